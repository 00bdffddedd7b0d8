# Redis with ten clients that set and get without a pause.
# needs: redis-server redis-tools
record -- sh -c 'redis-server --port 7391 --save "" --appendonly no --daemonize yes >/dev/null
    until redis-cli -p 7391 ping >/dev/null 2>&1; do sleep 0.1; done
    redis-benchmark -p 7391 -q -c 10 -n 30000 -t set,get >/dev/null
    redis-cli -p 7391 shutdown nosave'
