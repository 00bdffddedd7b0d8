# PostgreSQL with four clients that together start 150 of pgbench's bank transfers a second, for five seconds.
# needs: postgresql
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
chown postgres "$work"
as() { setpriv --reuid=postgres --regid=postgres --init-groups "$@"; }
as "$bin/initdb" -D "$work/data" >/dev/null
cat >>data/postgresql.conf <<CONF
listen_addresses = ''
unix_socket_directories = '$work'
CONF
as "$bin/pg_ctl" -D data -l log -w start >/dev/null
as "$bin/pgbench" -h "$work" -i -s 2 -q postgres 2>/dev/null
as "$bin/pg_ctl" -D data -m fast stop >/dev/null
record -- setpriv --reuid=postgres --regid=postgres --init-groups sh -c "$bin/pg_ctl -D data -l log -w start >/dev/null
    $bin/pgbench -h $work -c 4 -j 2 -R 150 -T 5 postgres >/dev/null 2>&1
    $bin/pg_ctl -D data -m fast stop >/dev/null"
