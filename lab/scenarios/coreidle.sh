# wattwise coreidle, the program itself, by a cpuset partition on cgroup v2: one after the other of what it promises.
mount -t cgroup2 cgroup2 /sys/fs/cgroup
group=/sys/fs/cgroup/wattwise-coreidle
journal=/tmp/journal
coreidle() { wattwise coreidle --journal $journal "$@"; }
list() { # list PID: the CPUs it may run on
    sed -n 's/^Cpus_allowed_list:[^0-9]*//p' "/proc/$1/status"
}
busy() { # busy CPU: ticks at work
    awk -v cpu="cpu$1" '$1 == cpu { print $2 + $3 + $4 + $7 + $8 }' /proc/stat
}
until_true() { # until_true WHAT COMMAND...: within a minute
    what=$1
    shift
    n=0
    until "$@"; do
        n=$((n + 1))
        [ $n -lt 600 ] || fail "$what: not within a minute; $(coreidle status | head -3)"
        sleep 0.1
    done
    pass "$what"
}
gone() { [ ! -e $group ]; }
idled() { [ "$(cat $group/cpuset.cpus 2>/dev/null)" = "$1" ] && [ "$(cat $group/cpuset.cpus.partition)" != member ]; }
opened() { gone || [ "$(cat $group/cpuset.cpus.partition)" = member ]; }

coreidle status >/tmp/said
grep -q '^off' /tmp/said && grep -q 'partition (cgroup v2): available' /tmp/said || fail "status: $(cat /tmp/said)"
pass "off at first"
# A CPU that the machine does not have is not possible here (3); what is no list of CPUs is bad input (2).
expect "bad masks refused" "2 3 2" "$(code coreidle set '') $(code coreidle set 9) $(code coreidle set x)"
gone || fail "a refused mask leaves a group"

# By hand. Work that forks, and work that computes; each CPU's own ticks say where it ran.
hogs() { # hogs: four, their numbers in $pids
    pids=
    for i in 1 2 3 4; do
        while :; do :; done &
        pids="$pids $!"
    done
}
hogs
while :; do (true); done &
work=$!
sleep 0.3
coreidle set 0-1 >/tmp/said || fail "set: $(cat /tmp/said)"
expect "confined at once" "0-1 0-1" "$(list $$) $(list $work)"
sleep 0.2
from="$(busy 2) $(busy 3)"
sleep 2
set -- $from
ticks=$(($(busy 2) - $1 + $(busy 3) - $2))
[ $ticks -le 20 ] || fail "the idled CPUs worked for $ticks ticks in 2 s"
pass "idled CPUs stay idle under full load"
coreidle set 2-3 >/tmp/said || fail "set: $(cat /tmp/said)"
expect "another mask" 2-3 "$(list $work)"
coreidle off >/tmp/said || fail "off: $(cat /tmp/said)"
gone || fail "off leaves the group"
expect "released" "0-3 0-3" "$(list $$) $(list $work)"

# A governor: work that fills the CPUs keeps them all; SIGTERM ends it; SIGKILL of it and of its guard leaves what the
# next start takes away.
wattwise coreidle --journal $journal governor ondemand 100 >/tmp/governor 2>&1 &
pid=$!
until_true "the governor is in charge" [ -e $journal/coreidle.json ]
sleep 1
opened || fail "CPU-bound work is confined"
pass "CPU-bound work is not confined"
kill $pids $work
until_true "an idle machine is gathered" idled 1-3
from=$(cut -d' ' -f1 /proc/uptime)
hogs
until opened; do :; done
to=$(cut -d' ' -f1 /proc/uptime)
say "{\"figure\":\"burst: all CPUs open $(awk "BEGIN { printf \"%.0f\", ($to - $from) * 1000 }") ms after it began; the governor looks every 100 ms\"}"
awk "BEGIN { exit !($to - $from < 2) }" || fail "a burst waits $from to $to"
pass "a burst opens all"
kill $pids
kill $pid
wait $pid || fail "the governor: $(cat /tmp/governor)"
gone || fail "the governor leaves its group"
pass "released at the end"

wattwise coreidle --journal $journal governor userspace:keep=2 >/tmp/governor 2>&1 &
pid=$!
until_true "two CPUs are kept" idled 2-3
# Another manager takes it away.
echo member >$group/cpuset.cpus.partition
rmdir $group
until_true "put in force again" idled 2-3
# Hotplug of a kept CPU: another one is kept.
echo 0 >$CPU/cpu1/online
until_true "another CPU for one that is unplugged" idled 1,3
kill -0 $pid || fail "hotplug ends it: $(cat /tmp/governor)"
echo 1 >$CPU/cpu1/online
until_true "plugged in again, kept again" idled 2-3
for process in /proc/[0-9]*; do
    if tr '\0' ' ' <$process/cmdline 2>/dev/null | grep -q "restore --after $pid "; then kill -9 ${process#/proc/}; fi
done
kill -9 $pid
wait $pid 2>/dev/null || true
idled 2-3 || fail "after SIGKILL: $(cat $group/cpuset.cpus)"
coreidle status >/tmp/said
grep -q 'which is gone' /tmp/said || fail "status after SIGKILL: $(cat /tmp/said)"
wattwise restore --journal $journal >/tmp/said || fail "restore: $(cat /tmp/said)"
gone || fail "restore leaves the group"
expect "after a kill, the next start releases" 0-3 "$(list $$)"

coreidle cost --times 10 >/tmp/said || fail "cost: $(cat /tmp/said)"
while read -r line; do say "{\"figure\":\"cost: $(echo "$line" | tr '"' "'")\"}"; done </tmp/said
expect "all CPUs afterwards" 0-3 "$(cat $CPU/online)"
pass "costs measured"
