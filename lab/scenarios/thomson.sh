# Study 000's measurement of completion times: a job of fixed work, begun on a CPU at rest at its lowest speed.
load cpufreq_userspace
insmod /mods/vpower.ko $VPOWER feel=1 feel_period_us=1000
insmod /mods/cpufreq_burst.ko
p=$CPU/cpufreq/policy0
lowest=$(cat $p/cpuinfo_min_freq)

# The loop's length: as long at the highest speed as the study's job.
governor performance
ps=$(wwload speed)
loops=$((JOB_US * 1000000 / ps))

trials() { # trials NAME REST_MS
    wwload jobs cpu=0 loops=$loops rest_ms=$2 trials=10 >/tmp/times
    while read -r ns khz; do
        [ $1 = performance ] || [ $khz = $lowest ] || fail "$1: $khz kHz after $2 ms of rest"
        say "{\"policy\":\"$1\",\"ns\":$ns}"
    done </tmp/times
    pass "ten trials under $1"
}
daemon() { # daemon RULE REST_MS
    governor userspace
    echo $lowest >$p/scaling_setspeed
    powerd $1 $p &
    pid=$!
    trials powerd-$1 $2
    kill $pid
}
trials performance 1000
governor burst
trials burst 3000
daemon printed 4000
daemon hiadaptive 40000
governor performance
