# coreidle as a sched_ext scheduler: confinement, changes, faults, and the way back to the kernel's own.
state=/sys/kernel/sched_ext/state
[ -r $state ] || fail "this kernel has no sched_ext: --kernel 7.2"
mkfifo /tmp/in /tmp/out
# Both ends of both are held open here: the loader's death ends neither.
exec 3<>/tmp/in 4<>/tmp/out
loader() { # loader ARGUMENTS: starts it and waits until it is attached
    coreidle-scx "$@" </tmp/in >/tmp/out 2>/tmp/errors 3<&- 4<&- &
    pid=$!
    read -t 60 -r said <&4 || said="$(cat /tmp/errors)"
    [ "$said" = ready ] || fail "loader: $said"
}
ask() { # ask LINE: its answer is in $said
    echo "$1" >&3
    read -t 60 -r said <&4 || fail "$1: no answer"
}
mask() {
    coretest one mask="$1" in=/tmp/in out=/tmp/out || fail "mask $1"
}
storm() { # storm NAME ARGUMENTS
    name=$1
    shift
    said=$(coretest storm "$@") || fail "$name: $said"
    say "$said"
}
trace_tasks 24576

expect "not loaded" disabled "$(cat $state)"
loader 0-1
expect "loaded" "enabled coreidle" "$(cat $state) $(cat /sys/kernel/sched_ext/root/ops)"

# A storm on half of the CPUs, with tasks pinned to the other half.
steady() {
    mask 0-1
    storm steady ms=${STEADY_MS:-6000} hogs=4 nice=1 leaves=3 pairs=3 pin=3 pin2=1 part=1-2
}
record steady steady
ask stats
say "$said"

# A change every 10 ms.
changes() {
    coretest storm ms=$((${CHANGES_MS:-60000} + 500)) hogs=3 leaves=2 pairs=1 pin=3 part=1-2 >/tmp/storm &
    storm=$!
    said=$(coretest change ms=${CHANGES_MS:-60000} period_ms=10 masks=0-1,2-3,0,1-3,0-3,3,1-2 in=/tmp/in out=/tmp/out) ||
        fail "changes: $said"
    say "$said"
    wait $storm || fail "work under changes: $(cat /tmp/storm)"
    say "$(cat /tmp/storm)"
}
record changes changes
expect "survives changes" enabled "$(cat $state)"
ask stats
say "$said"

# Work that wants every CPU, and gets them.
burst() {
    coretest storm ms=10500 hogs=4 >/tmp/storm &
    storm=$!
    coretest change ms=10000 period_ms=500 masks=0,0-3 in=/tmp/in out=/tmp/out >/dev/null || fail burst
    wait $storm || fail "burst: $(cat /tmp/storm)"
}
record burst burst

# Masks that will not do: one line each, and nothing changes.
mask 0-1
for bad in "" 4 9-12 x 2-1 0, 0-9999; do
    ask "mask $bad"
    case "$said" in
    "error: mask"*) ;;
    *) fail "mask '$bad': $said" ;;
    esac
done
pass "bad masks refused"
ask stats
case "$said" in
*'"kept":"0-1"'*) pass "bad masks change nothing" ;;
*) fail "after bad masks: $said" ;;
esac
code=0
coreidle-scx 7 </dev/null 2>/tmp/errors || code=$?
expect "no CPU online" "2 1" "$code $(wc -l </tmp/errors)"
code=0
coreidle-scx 0 </dev/null 2>/tmp/errors || code=$?
expect "a second scheduler" "3 1" "$code $(wc -l </tmp/errors)"

# CPUs come and go.
kept() { # kept NAME LIST NOTHING_LEFT
    ask stats
    case "$said" in
    "{\"kept\":\"$2\",\"nothing_left\":$3,"*) pass "$1" ;;
    *) fail "$1: $said" ;;
    esac
}
coretest storm ms=6000 hogs=3 leaves=2 pairs=2 pin=0 >/tmp/storm &
storm=$!
mask 1-2
echo 0 >$CPU/cpu2/online
kept "a kept CPU goes" 1 false
echo 0 >$CPU/cpu1/online
kept "the last one goes: all are kept" 0,3 true
echo 1 >$CPU/cpu2/online
kept "one comes back" 2 false
echo 1 >$CPU/cpu1/online
kept "both are back" 1-2 false
echo 0 >$CPU/cpu3/online
echo 1 >$CPU/cpu3/online
wait $storm || fail "work under hotplug: $(cat /tmp/storm)"
say "$(cat /tmp/storm)"
expect "survives hotplug" enabled "$(cat $state)"

# SIGKILL: the kernel's own scheduler returns, and work goes on.
mask 0
coretest storm ms=4000 hogs=4 leaves=2 pairs=2 pin=3 >/tmp/storm &
storm=$!
sleep 1
kill -9 $pid
wait $pid 2>/dev/null || true
for i in 1 2 3 4 5 6 7 8 9 10; do
    [ "$(cat $state)" = disabled ] && break
    sleep 0.1
done
expect "SIGKILL unloads it" disabled "$(cat $state)"
wait $storm || fail "work after SIGKILL: $(cat /tmp/storm)"
say "$(cat /tmp/storm)"

# SIGTERM, and the end of the input.
loader 0-1
kill $pid
code=0
wait $pid || code=$?
expect SIGTERM "0 disabled" "$code $(cat $state)"
code=0
said=$(coreidle-scx 0-1 </dev/null) || code=$?
expect "end of input" "0 ready" "$code $said"
sleep 0.5
expect "unloaded" disabled "$(cat $state)"

# One that dispatches nothing: the watchdog ends it, and the loader says so.
coretest storm ms=15000 hogs=4 leaves=1 pairs=1 >/tmp/storm &
storm=$!
from=$(cut -d. -f1 /proc/uptime)
loader --stall 0-1
read -t 60 -r said <&4 || fail "the watchdog does not bite"
case "$said" in
"ended: runnable task stall"* | "ended: no ordinary task ran"*) pass "a stall is noticed" ;;
*) fail "stall: $said" ;;
esac
say "{\"stalled_s\":$(($(cut -d. -f1 /proc/uptime) - from)),\"said\":\"$(echo "$said" | tr -d '"')\"}"
code=0
wait $pid || code=$?
expect "after the stall" "1 disabled" "$code $(cat $state)"
wait $storm || fail "work after the stall: $(cat /tmp/storm)"
say "$(cat /tmp/storm)"
pass "work goes on after all"
