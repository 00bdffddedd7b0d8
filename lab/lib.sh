# What every scenario may use.
say() { # say JSON: one line of results
    echo "$1" >/dev/ttyS1
}
pass() { # pass NAME: a check that held
    say "{\"check\":\"$1\"}"
}
fail() { # fail WHY: the run has failed
    say "{\"fail\":\"$(echo "$1" | tr '"\n' "' ")\"}"
    exit 1
}
expect() { # expect NAME WANTED FOUND
    [ "$2" = "$3" ] || fail "$1: expected $2, found $3"
    pass "$1"
}
until_is() { # until_is NAME WANTED COMMAND...: within a minute
    name=$1 wanted=$2 found=
    shift 2
    for _ in $(seq 600); do
        found=$("$@")
        [ "$found" != "$wanted" ] || break
        sleep 0.1
    done
    expect "$name" "$wanted" "$found"
}
code() { # code COMMAND...: its exit code, whatever it is; what it says is in /tmp/said
    got=0
    "$@" >/tmp/said 2>&1 || got=$?
    echo $got
}
refused() { # refused NAME COMMAND...: the command must fail
    name=$1
    shift
    if "$@" 2>/dev/null; then fail "$name: should have been refused"; fi
    pass "$name"
}
load() { # load MODULE...: those that are not built in
    for module; do
        [ -f "/mods/$module.ko" ] || continue
        grep -q "^$module " /proc/modules || insmod "/mods/$module.ko"
    done
}
CPU=/sys/devices/system/cpu
governor() { # governor NAME, on every policy
    for policy in $CPU/cpufreq/policy*; do echo "$1" >"$policy/scaling_governor"; done
}
tracing=/sys/kernel/tracing
trace_tasks() { # trace_tasks KB: a buffer for what the core-idling judge reads, and nothing recorded yet
    echo "$1" >$tracing/buffer_size_kb
    echo mono >$tracing/trace_clock
    echo 1 >$tracing/events/sched/sched_switch/enable
    echo 1 >$tracing/events/irq_vectors/local_timer_entry/enable
    echo 0 >$tracing/tracing_on
}
record() { # record NAME COMMAND...: its trace, and every task's affinity before and after
    name=$1
    shift
    coretest affinities >>/out/affinities.txt
    echo >$tracing/trace
    echo 1 >$tracing/tracing_on
    "$@"
    echo 0 >$tracing/tracing_on
    coretest affinities >>/out/affinities.txt
    cat $tracing/trace >/out/$name.txt
}
