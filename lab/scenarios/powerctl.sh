# /dev/powerctl on vpower's registers: two cores of two threads, which share theirs.
t=/sys/kernel/tracing
load cpufreq_userspace
insmod /mods/vpower.ko latency_ns=10000
p=$CPU/cpufreq/policy0
governor userspace
insmod /mods/powerctl.ko backend=virtual
say "$(pctest caps)"
try() { # try NAME COMMAND...
    name=$1
    shift
    said=$("$@" 2>&1) || fail "$name: $said"
    pass "$name"
}
try faults pctest faults
try life pctest life
try wait pctest wait
try storm pctest storm 1000
expect "none after the storm" 0 "$(pctest count)"

# 200 threads, recorded.
echo 65536 >$t/buffer_size_kb
echo mono >$t/trace_clock
echo 1 >$t/events/sched/sched_switch/enable
echo 1 >$t/events/powerctl/enable
echo >$t/trace
echo 1 >$t/tracing_on
pctest threads 200 3000 >/out/threads.txt || fail "threads: $(tail -n 1 /out/threads.txt)"
echo 0 >$t/tracing_on
cat $t/trace >/out/switches.txt
echo 0 >$t/events/enable
expect "all in force" "in force 200" "$(grep force /out/threads.txt)"

# SIGKILL of all.
pctest hang 200 >/tmp/hang &
pid=$!
while [ ! -s /tmp/hang ]; do sleep 0.1; done
expect "200 hang" 200 "$(cat /tmp/hang)"
refused "unload in use" rmmod powerctl
kill -9 $pid
wait $pid 2>/dev/null || true
sleep 0.5
expect "none after SIGKILL" 0 "$(pctest count)"

# A CPU goes and comes under profiles.
pctest threads 40 3000 >/tmp/hot &
pid=$!
sleep 0.5
for round in 1 2 3; do
    echo 0 >$CPU/cpu3/online
    sleep 0.1
    echo 1 >$CPU/cpu3/online
done
wait $pid || fail "hotplug: $(tail -n 1 /tmp/hot)"
pass hotplug

# A back end that fails: counted, tried again, nothing breaks.
echo 50 >/sys/kernel/debug/vpower/fail_msr
pctest threads 20 300 >/tmp/failing || fail "failing: $(tail -n 1 /tmp/failing)"
echo 0 >/sys/kernel/debug/vpower/fail_msr
pass "failing writes"

pctest pingpong 1000 2 >/dev/null || fail pingpong
pctest latency $p/scaling_setspeed >/dev/null || fail latency
pass "ping-pong and latency"
rmmod powerctl
pass unloaded

# The cpufreq back end, and one that does not exist.
insmod /mods/powerctl.ko backend=cpufreq
say "$(pctest caps)"
pass "cpufreq back end"
rmmod powerctl
refused "no such back end" insmod /mods/powerctl.ko backend=none
