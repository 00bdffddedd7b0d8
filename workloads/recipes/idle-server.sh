# A server at rest: PostgreSQL, Redis and nginx without clients, and a program that looks at the machine each second, for 20 s.
# needs: postgresql redis-server nginx-light procps
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
chown postgres "$work"
setpriv --reuid=postgres --regid=postgres --init-groups "$bin/initdb" -D "$work/data" >/dev/null
cat >services.sh <<SERVICES
redis-server --port 7391 --save '' --appendonly no >/dev/null &
nginx -g 'daemon off; error_log $work/nginx.log; pid $work/nginx.pid;' -c $work/nginx.conf &
setpriv --reuid=postgres --regid=postgres --init-groups $bin/postgres -D $work/data -c listen_addresses='' -c unix_socket_directories=$work 2>$work/log &
vmstat -n 1 20 >/dev/null
kill \$(jobs -p)
wait
SERVICES
cat >nginx.conf <<CONF
worker_processes 2;
events { worker_connections 64; }
http { access_log off; client_body_temp_path $work/body; proxy_temp_path $work/proxy; fastcgi_temp_path $work/fastcgi;
    uwsgi_temp_path $work/uwsgi; scgi_temp_path $work/scgi; server { listen 127.0.0.1:7392; root $work; } }
CONF
record --timers -- bash services.sh
