# /dev/powerctl on vpower's registers: two cores of two threads, of which the faster wish is in force.
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
# wattwise's own wrapper: the command inherits the profile, nobody has it afterwards.
try "run with a profile" wattwise run --thread-profile tstate=8 -- pctest has
expect "its exit code is the command's" 1 "$(code wattwise run --thread-profile tstate=4 -- pctest has)"
expect "none after the run" 0 "$(pctest count)"
expect "a profile that cannot be" 3 "$(code wattwise run --thread-profile tstate=8,khz=1 -- pctest has)"
grep -q 'beyond the hardware' /tmp/said || fail "a profile that cannot be: $(cat /tmp/said)"
expect "a word that is none" 2 "$(code wattwise run --thread-profile tstate=x -- pctest has)"
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

# Suspend under profiles, to where the other CPUs are off, and back. Once the hog runs again it is not switched from: if
# that is before the suspend is over, its profile has to come without a switch.
echo deep >/sys/power/mem_sleep
echo processors >/sys/power/pm_test
echo 1 >/sys/module/suspend/parameters/pm_test_delay
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
echo 1024 >$t/buffer_size_kb
for round in 1 2; do
    echo >$t/trace
    echo 1 >$t/events/power/suspend_resume/enable
    echo 1 >$t/events/powerctl/enable
    >/tmp/hog
    pctest hog 3 5 120000 >/tmp/hog &
    pid=$!
    while [ ! -s /tmp/hog ]; do sleep 0.1; done
    pctest threads 8 2000 >/tmp/slept &
    others=$!
    sleep 0.2
    echo 1 >$t/tracing_on
    echo mem >/sys/power/state || fail "suspend: $?"
    sleep 0.5
    echo 0 >$t/tracing_on
    kill -0 $pid || fail "suspend: the hog was gone"
    cat $t/trace >/out/suspend$round.txt
    say "{\"round\":$round,\"hog\":$(head -n 1 /tmp/hog)}"
    wait $others || fail "suspend: $(tail -n 1 /tmp/slept)"
    kill $pid
    wait $pid || [ $? = 143 ]
done
echo 0 >$t/events/enable
pass suspend

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

# Two kinds of core: the second is slower by default. And each register has bits that are not the module's: turbo switched
# off in PERF_CTL, an activity window in HWP_REQUEST, where a desired level is pinned as well.
r=/sys/kernel/debug/vpower/registers
# Whatever else runs on a CPU for a moment, this shell's own commands too, has the default there: hence until_is.
registers() { # registers CPU
    sed -n "s/^$1 //p" $r
}
for cpu in 0 1 2 3; do
    echo "$cpu 774 20f80102001" >$r
done
for cpu in 0 1; do echo "$cpu 199 100000e00" >$r; done
for cpu in 2 3; do echo "$cpu 199 100000a00" >$r; done
insmod /mods/powerctl.ko backend=virtual
expect "a fast core's own default" "100000e00 0 20f80102001" "$(registers 0)"
expect "a slow core's own default" "100000a00 0 20f80102001" "$(registers 2)"
held() { # held FLAG VALUE CPU...: a profile on each
    flag=$1 value=$2
    shift 2
    pids=""
    for cpu; do
        >/tmp/on$cpu
        pctest on $cpu $flag $value >/tmp/on$cpu &
        pids="$pids $!"
    done
    for cpu; do
        while [ ! -s /tmp/on$cpu ]; do sleep 0.1; done
    done
}
released() {
    kill $pids
    for pid in $pids; do wait $pid 2>/dev/null || true; done
    sleep 0.3
}
held p 800000 2 3
until_is "PERF_CTL keeps what is not ours" "100000800 0 20f80102001" registers 2
until_is "the other core has its default" "100000e00 0 20f80102001" registers 0
released
until_is "the slow core's default is back" "100000a00 0 20f80102001" registers 2
held t 8 0 1
until_is "a T-state alone changes no other field" "100000e00 18 20f80102001" registers 0
released
held d 8 0 1
until_is "HWP_REQUEST keeps what is not ours" "100000e00 0 20f80080801" registers 0
released
until_is "the fast core's default is back" "100000e00 0 20f80102001" registers 0
held l 800000 2 3
until_is "a profile outlasts a measurement" "100000800 0 20f80102001" registers 3
released
expect "the default is the lowest of all" 1000000 "$(pctest caps | sed 's/.*"khz":.[0-9]*,\([0-9]*\),.*/\1/')"
try pinned pctest pinned
rmmod powerctl
expect "unloaded, a slow core" "100000a00 0 20f80102001" "$(registers 2)"
insmod /mods/powerctl.ko backend=virtual max_profiles=4
try "a limit for each user" pctest users 4
rmmod powerctl

# Anything at all, from threads with and without rights. A first run fills caches; what is allocated afterwards is
# given back: no slab of a profile's size or a user's keeps a part of what was made.
objects() { # objects SIZE: that are allocated of the kernel's slabs of that size
    for slab in /sys/kernel/slab/kmalloc*-$1; do echo 1 >$slab/shrink; done
    awk -v size="$1" '$1 ~ "^kmalloc.*-" size "$" { n += $2 } END { print n + 0 }' /proc/slabinfo
}
pins() { # pages that are pinned
    awk '/^nr_foll_pin_acquired/ { n += $2 } /^nr_foll_pin_released/ { n -= $2 } END { print n + 0 }' /proc/vmstat
}
fuzz() { # fuzz SEED MS
    pctest fuzz $1 $2 >/out/fuzz-$1.txt || fail "fuzz $1: $(tail -n 1 /out/fuzz-$1.txt)"
}
insmod /mods/powerctl.ko backend=virtual
dmesg -c >/dev/null
fuzz 1 500
cp /out/fuzz-1.txt /tmp/first
sleep 1
pinned=$(pins)
profiles=$(objects 96) users=$(objects 32)
made=0
for seed in 1 2 3; do
    fuzz $seed 4000
    made=$((made + $(sed -n 's/^made //p' /out/fuzz-$seed.txt)))
done
pass fuzz
expect "a seed's inputs are its own" "$(grep inputs /tmp/first)" "$(grep inputs /out/fuzz-1.txt)"
expect "seeds differ" 3 "$(cat /out/fuzz-*.txt | grep inputs | sort -u | wc -l)"
# Others allocate too, and what is freed after a grace period takes a moment; a leak stays.
for second in 1 2 3 4 5 6 7 8 9 10; do
    sleep 1
    more_profiles=$(($(objects 96) - profiles)) more_users=$(($(objects 32) - users))
    [ $more_profiles -ge $((made / 4)) ] || [ $more_users -ge $((made / 4)) ] || break
done
[ $made -gt 300 ] || fail "only $made profiles were made"
say "{\"made\":$made,\"objects\":[$more_profiles,$more_users]}"
[ $more_profiles -lt $((made / 4)) ] || fail "$made profiles made, $more_profiles objects of their size are left"
[ $more_users -lt $((made / 4)) ] || fail "$made profiles made, $more_users objects of a user's size are left"
pass "memory is given back"
expect "no page stays pinned" $pinned "$(pins)"
expect "none after fuzzing" 0 "$(pctest count)"
expect "nobody holds the module" 0 "$(cat /sys/module/powerctl/refcnt)"
rmmod powerctl
# The same where a user without rights may have one profile.
insmod /mods/powerctl.ko backend=virtual max_profiles=1
fuzz 5 2000
grep -q ENOSPC /out/fuzz-5.txt || fail "nobody had one too many"
try "a user's count after fuzzing" pctest users 1
rmmod powerctl
if dmesg | grep -iE 'warning|bug:|oops|call trace|refcount|leak|fault|stall' >/tmp/complaints; then
    fail "after fuzzing: $(head -n 3 /tmp/complaints)"
fi
pass "no complaint while fuzzing"

# The cpufreq back end, and one that does not exist.
insmod /mods/powerctl.ko backend=cpufreq
say "$(pctest caps)"
pass "cpufreq back end"
rmmod powerctl
expect "run without the module" 3 "$(code wattwise run --thread-profile tstate=8 -- true)"
refused "no such back end" insmod /mods/powerctl.ko backend=none

# A governor takes the speeds while a command runs with a profile: wattwise says so, then and afterwards.
insmod /mods/powerctl.ko backend=msr registers=vpower
expect "a command whose speed is taken runs on" 0 \
    "$(code wattwise run --thread-profile khz=800000 -- /bin/sh -c "echo schedutil >$p/scaling_governor; sleep 1")"
grep -q 'took the speeds meanwhile' /tmp/said || fail "speeds taken: $(cat /tmp/said)"
expect "speeds that are taken" 3 "$(code wattwise run --thread-profile khz=800000 -- true)"
grep -q 'choose the governor performance' /tmp/said || fail "speeds that are taken: $(cat /tmp/said)"
expect "a T-state all the same" 0 "$(code wattwise run --thread-profile tstate=8 -- pctest has)"
rmmod powerctl
