# Where the kernel puts tasks: loads that wake and fork, recorded with what each decision had to go by.
t=/sys/kernel/tracing
SYS=/sys/devices/system/cpu
# The topology that the judge has in mind is the kernel's.
expect "threads of CPU 0's core" "$SIBLINGS" "$(cat $SYS/cpu0/topology/core_cpus_list)"
expect "package of CPU 2" "$PACKAGE" "$(cat $SYS/cpu2/topology/physical_package_id)"
llc=$(cat $SYS/cpu0/cache/index3/shared_cpu_list 2>/dev/null || cat $SYS/cpu0/cache/index2/shared_cpu_list)
expect "CPUs that share CPU 0's last-level cache" "$LLC" "$llc"

echo 16384 >$t/buffer_size_kb
echo mono >$t/trace_clock
for event in sched_switch sched_waking sched_wakeup sched_wakeup_new sched_migrate_task sched_process_exit; do
    echo 1 >$t/events/sched/$event/enable
done
sleepers() { # sleepers N PERIOD_US BUSY_US: tasks on timers, on no CPU in particular
    for i in $(seq "$1"); do
        wwload cyclic period_us=$(($2 + i * 170)) busy_us="$3" ms="$MS" &
    done
    wait
}
storm() { # storm ARGUMENTS...: see coretest
    coretest storm ms="$MS" "$@" >/dev/null
}
record_load() { # record_load NAME COMMAND...
    name=$1
    shift
    coretest affinities >/out/$name.affinities
    echo >$t/trace
    echo 1 >$t/tracing_on
    "$@"
    echo 0 >$t/tracing_on
    coretest affinities >>/out/$name.affinities
    cat $t/trace >/out/$name.trace
    say "{\"load\":\"$name\"}"
}
record_load pair storm pairs=1
record_load pairs storm pairs=4
record_load mixed storm pairs=2 hogs=1 leaves=1
record_load crowd storm pairs=3 hogs=3 leaves=2
record_load sleepers sleepers 6 4000 300
record_load build wwload build jobs=3 ms="$MS"
programs() { # programs N LOOPS: one after the other
    for _ in $(seq "$1"); do wwload work loops="$2" >/dev/null; done
}
record_load programs programs 300 20000
record_load short programs 300 1
