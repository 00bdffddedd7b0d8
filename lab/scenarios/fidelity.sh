# The same loads under each of the kernel's own governors, recorded for a replay in the model.
t=/sys/kernel/tracing
load cpufreq_ondemand cpufreq_conservative cpufreq_powersave cpufreq_userspace
insmod /mods/vpower.ko $VPOWER
CPUS=$(nproc)

loads() { # loads NAME: the same on every CPU, each begun a little later than the one before
    # By the shell alone: what a process more leaves behind, schedutil sees.
    IFS=,
    set -- $1
    unset IFS
    case $1 in
    build) wwload build jobs="$CPUS" ms="$MS" $BUSY ;;
    *) wwload "$@" cpus="$CPUS" stagger_us=2300 ms="$MS" $BUSY ;;
    esac
}

figures() { # the kernel's own books: speeds, changes, idle states
    for policy in $CPU/cpufreq/policy*; do
        echo "policy ${policy##*policy} $(cat $policy/stats/total_trans)"
        sed 's/^/time /' $policy/stats/time_in_state
    done
    for cpu in $CPU/cpu[0-9]*; do
        for state in $cpu/cpuidle/state*; do
            echo "idle ${cpu##*cpu} $(cat $state/name) $(cat $state/usage)"
        done
    done
}

clocks() { # the scheduler's clock and the trace's, in ms: without a process, which schedutil would see
    while read -r word _ ms; do
        case $word in
        ktime) mono=$ms ;;
        cpu_clk) echo "$mono $ms"; return ;;
        esac
    done </sys/kernel/debug/sched/debug
}

tunables() { # the governor's, as the kernel chose them
    for f in $CPU/cpufreq/$1/* $CPU/cpufreq/policy0/$1/*; do
        [ -f "$f" ] && echo "${f##*/}=$(cat "$f")"
    done || true
}

# Periods that are no multiple of the loads' own: at the default 10 ms a load of 10 ms wakes just before or just
# after the period is over, and microseconds decide whether a window is 10 or 14 ms long.
tune() { # tune GOVERNOR
    for f in $CPU/cpufreq/$1/sampling_rate $CPU/cpufreq/$1/rate_limit_us; do
        [ ! -f $f ] || echo 10700 >$f
    done
}

echo $BUFFER_KB >$t/buffer_size_kb
echo mono >$t/trace_clock
# The tick's phase: the model's ticks come at the same moments.
echo 1 >$t/events/timer/hrtimer_expire_entry/enable
echo 1 >$t/tracing_on
wwload steady cpu=0 share=100 ms=100
echo 0 >$t/tracing_on
echo 0 >$t/events/timer/hrtimer_expire_entry/enable
tick=$(sed -n 's/.*function=tick_\(sched_timer\|nohz_handler\) now=\([0-9]*\).*/\2/p' $t/trace | tail -n 1)
say "{\"tick_ns\":${tick:-0}}"

for event in sched/sched_switch sched/sched_waking sched/sched_wakeup_new sched/sched_process_fork \
    sched/sched_process_exit power/cpu_idle power/cpu_frequency \
    irq_vectors/reschedule_entry irq_vectors/call_function_entry irq_vectors/call_function_single_entry; do
    echo 1 >$t/events/$event/enable
done
for idle in $IDLE; do
    echo $idle >$CPU/cpuidle/current_governor
    for g in $GOVERNORS; do
        for l in $LOADS; do
            run=$(echo "$idle-$g-$l" | tr ',=' '_-')
            governor powersave
            sleep 0.1
            figures >/out/$run.before
            echo >$t/trace
            sleep 0.3
            echo 1 >$t/tracing_on
            governor $g
            [ $g != userspace ] || for p in $CPU/cpufreq/policy*; do echo $USERSPACE_KHZ >$p/scaling_setspeed; done
            tune $g
            clocks >/out/$run.clocks
            sleep 0.3
            echo begin >$t/trace_marker
            loads $l
            echo end >$t/trace_marker
            echo 0 >$t/tracing_on
            figures >/out/$run.after
            tunables $g >/out/$run.tunables
            cat $t/trace >/out/$run.trace
            say "{\"run\":\"$run\",\"governor\":\"$g\",\"idle\":\"$idle\",\"load\":\"$l\"}"
        done
    done
done
