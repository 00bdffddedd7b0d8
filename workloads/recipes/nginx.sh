# nginx with two workers, and a client with sixteen connections that fetch a page each as fast as they can.
# needs: nginx-light wrk
mkdir site
some_files 1 | head -n 20 | while read -r file; do cat "$file"; done >site/page
cat >nginx.conf <<CONF
worker_processes 2; pid $work/nginx.pid; error_log $work/nginx.log;
events { worker_connections 64; }
http { access_log off; client_body_temp_path $work/body; proxy_temp_path $work/proxy; fastcgi_temp_path $work/fastcgi;
    uwsgi_temp_path $work/uwsgi; scgi_temp_path $work/scgi; gzip on; gzip_types *;
    server { listen 127.0.0.1:7392; root $work/site; } }
CONF
chmod 755 "$work"
record -- sh -c "nginx -p $work -c nginx.conf 2>/dev/null
    wrk -t 2 -c 16 -d 2s -H 'Accept-Encoding: gzip' http://127.0.0.1:7392/page >/dev/null
    nginx -p $work -c nginx.conf -s quit 2>/dev/null
    while [ -e nginx.pid ]; do sleep 0.05; done"
