# The burst governor: chosen through plain sysfs, its decisions recorded for the replay.
p=$CPU/cpufreq/policy0
t=/sys/kernel/tracing
insmod /mods/vpower.ko $VPOWER domains=0-1,2,3
load cpufreq_ondemand
insmod /mods/cpufreq_burst.ko
governor burst
expect chosen burst "$(cat $p/scaling_governor)"
g=$CPU/cpufreq/burst
expect tunables "3 3 one" "$(cat $g/busy) $(cat $g/idle) $(cat $g/step)"
put() { echo "$2" >"$g/$1"; }
refused "busy -1" put busy -1
refused "idle 10001" put idle 10001
refused "step two" put step two

echo 32768 >$t/buffer_size_kb
echo 1 >$t/events/cpufreq_burst/enable
echo 1 >$t/tracing_on
# From idle to the top and down again, on one CPU, then on several of a shared domain.
sleep 1
wwload steady cpu=2 share=100 ms=500
sleep 1
wwload burst cpu=3 busy_ms=50 idle_ms=150 ms=1500
wwload burst cpu=0 busy_ms=20 idle_ms=60 ms=1500 &
wwload burst cpu=1 busy_ms=5 idle_ms=25 ms=1500
wait
echo 0 >$t/tracing_on
cat $t/trace >/out/default.txt
echo >$t/trace

# The tunables act at run time.
echo 1 >$g/busy
echo 7 >$g/idle
echo proportional >$g/step
echo 1 >$t/tracing_on
sleep 1
wwload burst cpu=2 busy_ms=30 idle_ms=90 ms=1500
echo 0 >$t/tracing_on
cat $t/trace >/out/tuned.txt
echo 0 >$t/events/enable
echo 3 >$g/busy
echo 3 >$g/idle
echo one >$g/step

# A sleeping CPU is not woken: timer interrupts of two idle seconds, burst beside ondemand.
timers() { # interrupts of the local timer, all CPUs
    awk '/^ *LOC:/ { n = 0; for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++) n += $i; print n }' /proc/interrupts
}
wakes() { # idle-state entries, all CPUs
    cat $CPU/cpu*/cpuidle/state*/usage | awk '{ n += $1 } END { print n }'
}
quiet() { # quiet GOVERNOR
    governor "$1"
    sleep 0.5
    a=$(timers)
    b=$(wakes)
    sleep 2
    say "{\"idle\":\"$1\",\"timers\":$(($(timers) - a)),\"wakes\":$(($(wakes) - b))}"
}
for round in 1 2 3; do
    quiet burst
    quiet ondemand
    quiet performance
done

# A speed limit holds, and hotplug and unloading leave nothing behind.
governor burst
echo 1600000 >$p/scaling_max_freq
wwload steady cpu=0 share=100 ms=200
[ "$(cat $p/scaling_cur_freq)" -le 1600000 ] || fail "over the limit: $(cat $p/scaling_cur_freq)"
pass "the limit holds"
echo 2400000 >$p/scaling_max_freq
echo 0 >$CPU/cpu1/online
wwload steady cpu=0 share=100 ms=100
echo 1 >$CPU/cpu1/online
expect "after hotplug" burst "$(cat $p/scaling_governor)"
refused "unload in use" rmmod cpufreq_burst
governor performance
rmmod cpufreq_burst
pass unloaded
# The slow path: a driver that cannot switch from the scheduler.
rmmod vpower
insmod /mods/vpower.ko $VPOWER fast_switch=0 domains=0,1,2,3
insmod /mods/cpufreq_burst.ko
governor burst
wwload burst cpu=0 busy_ms=1 idle_ms=100 ms=1000
echo 1 >$p/stats/reset
wwload steady cpu=0 share=100 ms=300
top=$(awk '/^2400000/ { print $2 }' $p/stats/time_in_state)
[ "$top" -ge 10 ] || fail "slow path: $top x 10 ms at the top in 300 ms of work"
pass "slow path"
governor performance
rmmod cpufreq_burst
