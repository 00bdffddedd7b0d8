# The rules of a cgroup v2 cpuset that core idling relies on: what follows a task, what a pinned one keeps, hotplug.
mkdir -p /tmp/cgroup
mount -t cgroup2 cgroup2 /tmp/cgroup
root=/tmp/cgroup
group=$root/wattwise.coreidle
echo +cpuset >$root/cgroup.subtree_control
mkdir $group
cpus=$group/cpuset.cpus
movable() { # every task that may be moved: of the kernel's threads none that is bound
    for p in $(cat $root/cgroup.procs); do
        echo "$p" >$group/cgroup.procs 2>/dev/null || true
    done
}
list() { # list PID: the CPUs it may run on
    sed -n 's/^Cpus_allowed_list:[^0-9]*//p' "/proc/$1/status"
}
mask() {
    coretest one mask="$1" file=$cpus || fail "mask $1"
}
trace_tasks 16384

# Bad values are refused and change nothing.
echo 0-1 >$cpus
for bad in 9-12 x 2-1; do
    if echo $bad 2>/dev/null >$cpus; then fail "cpuset.cpus takes $bad"; fi
done
expect "bad masks refused" "0-1 0-1" "$(cat $cpus) $(cat $cpus.effective)"
movable
expect "this shell is confined" 0-1 "$(list $$)"
# The kernel's own threads cannot be moved where they are bound, and are left where they are.
[ "$(wc -l <$root/cgroup.procs)" -gt 5 ] || fail "all threads were moved"
pass "bound kernel threads stay"

# A storm within; one task pinned to a CPU outside, started and left outside. Children follow their parents.
(
    echo 0 >$root/cgroup.procs
    # Longer than the storm within: its first process may run anywhere, and must not while that is recorded.
    exec coretest storm ms=$((${STEADY_MS:-3000} + 2000)) pin=3 hogs=0
) >/tmp/outside &
outside=$!
sleep 0.3
steady() {
    mask 0-1
    said=$(coretest storm ms=$((${STEADY_MS:-3000} - 500)) hogs=4 nice=1 leaves=3 pairs=3 pin=1) || fail "steady: $said"
    say "$said"
}
record steady steady
wait $outside || fail "outside: $(cat /tmp/outside)"
pass "a pinned task outside runs"

# A task within cannot pin itself to a CPU that is given up.
refused "pinning to a CPU given up" coretest storm ms=10 pin=3
# One that was pinned before it was moved: what the kernel does with its affinity, and what of it comes back.
(
    echo 0 >$root/cgroup.procs
    exec coretest storm ms=2500 pin=3 hogs=0
) >/tmp/pinned &
pinned=$!
sleep 0.5
child=$(cat /proc/$pinned/task/$pinned/children)
child=${child%% *}
expect "pinned outside" 3 "$(list $child)"
if echo $child >$group/cgroup.procs; then
    within=$(list $child)
else
    within=refused
fi
echo 0-3 >$cpus
released=$(list $child)
echo $child >$root/cgroup.procs
say "{\"pinned_to\":\"3\",\"in_0_1\":\"$within\",\"released\":\"$released\",\"outside_again\":\"$(list $child)\"}"
# 6.1 overwrites the affinity for good: who is pinned outside the mask must not be moved.
case "$(uname -r)" in
6.1.*) expect "a move overwrites an affinity" "0-1 0-3 0-3" "$within $released $(list $child)" ;;
*) expect "a move keeps the affinity" "0-1 3 3" "$within $released $(list $child)" ;;
esac
wait $pinned || fail "pinned: $(cat /tmp/pinned)"

# A change every 10 ms.
changes() {
    coretest storm ms=$((${CHANGES_MS:-20000} + 500)) hogs=3 leaves=2 pairs=1 >/tmp/storm &
    storm=$!
    said=$(coretest change ms=${CHANGES_MS:-20000} period_ms=10 masks=0-1,2-3,0,1-3,0-3,3,1-2 file=$cpus) ||
        fail "changes: $said"
    say "$said"
    wait $storm || fail "work under changes: $(cat /tmp/storm)"
    say "$(cat /tmp/storm)"
}
record changes changes

# A kept CPU goes, then the last one: the kernel lets the group use its parent's. What was asked for comes back.
coretest storm ms=3000 hogs=3 leaves=1 pairs=1 >/tmp/storm &
storm=$!
echo 1-2 >$cpus
echo 0 >$CPU/cpu2/online
sleep 0.2
expect "a kept CPU goes" "1-2 1" "$(cat $cpus) $(cat $cpus.effective)"
echo 0 >$CPU/cpu1/online
sleep 0.2
expect "the last one goes" "1-2 0,3" "$(cat $cpus) $(cat $cpus.effective)"
echo 1 >$CPU/cpu2/online
sleep 0.2
expect "one comes back" "1-2 2" "$(cat $cpus) $(cat $cpus.effective)"
echo 1 >$CPU/cpu1/online
sleep 0.2
expect "both are back" "1-2 1-2 1-2" "$(cat $cpus) $(cat $cpus.effective) $(list $$)"
wait $storm || fail "work under hotplug: $(cat /tmp/storm)"
say "$(cat /tmp/storm)"

# Release: tasks go back and are free at once; an occupied group cannot be removed, an empty one can.
refused "removal while in use" rmdir $group
for p in $(cat $group/cgroup.procs); do echo "$p" >$root/cgroup.procs 2>/dev/null || true; done
expect "released" 0-3 "$(list $$)"
expect "empty" 0 "$(wc -l <$group/cgroup.procs)"
rmdir $group
pass "removed"
