# The virtual hardware under stock drivers: what every later scenario stands on.
load cpufreq_ondemand cpufreq_conservative cpufreq_powersave cpufreq_userspace
insmod /mods/vpower.ko domains=0-1,2-3 latency_ns=20000
p=$CPU/cpufreq/policy0

expect domains "0 1" "$(cat $p/affected_cpus)"
expect driver vpower "$(cat $p/scaling_driver)"
expect levels "2400000 2000000 1600000 1200000 800000 400000" "$(echo $(cat $p/scaling_available_frequencies))"
for g in ondemand conservative powersave userspace schedutil performance; do
    governor $g
    expect "governor $g" $g "$(cat $p/scaling_governor)"
    [ $g = userspace ] || pass "settable $g"
done
expect performance 2400000 "$(cat $p/scaling_cur_freq)"
governor powersave
expect powersave 400000 "$(cat $p/scaling_cur_freq)"
governor userspace
for khz in 400000 1200000 2000000 2400000; do
    echo $khz >$p/scaling_setspeed
    expect "userspace $khz" $khz "$(cat $p/scaling_cur_freq)"
    expect "other domain at $khz" 400000 "$(cat $CPU/cpufreq/policy2/scaling_cur_freq)"
done
[ -r $p/stats/time_in_state ] && [ -r $p/stats/total_trans ] && [ -r $p/stats/trans_table ]
pass statistics

# Faults: a failed change leaves the old speed; delays only take time.
before=$(cat $p/scaling_cur_freq)
echo 1 >/sys/kernel/debug/vpower/fail_target
echo 800000 >$p/scaling_setspeed || true
echo 0 >/sys/kernel/debug/vpower/fail_target
expect "failed change" $before "$(cat $p/scaling_cur_freq)"
echo 2000 >/sys/kernel/debug/vpower/delay_us
echo 800000 >$p/scaling_setspeed
expect "slow change" 800000 "$(cat $p/scaling_cur_freq)"
echo 0 >/sys/kernel/debug/vpower/delay_us

# Idle states.
expect "idle driver" vpower "$(cat $CPU/cpuidle/current_driver)"
expect "idle states" "POLL C1 C3 C6" "$(echo $(cat $CPU/cpu0/cpuidle/state*/name))"
before=$(cat $CPU/cpu1/cpuidle/state3/usage)
sleep 1
after=$(cat $CPU/cpu1/cpuidle/state3/usage)
[ "$after" -gt "$before" ] || fail "C6 is never used"
pass "deep idle"

# Energy grows, more of it at a high speed.
zone=/sys/class/powercap/intel-rapl:0
expect zone package-0 "$(cat $zone/name)"
joules() { # uJ of a second of work at a governor
    governor "$1"
    a=$(cat $zone/energy_uj)
    timeout 1 sh -c 'while :; do :; done' 2>/dev/null || true
    b=$(cat $zone/energy_uj)
    echo $((b - a))
}
low=$(joules powersave)
high=$(joules performance)
[ "$low" -gt 0 ] && [ "$high" -gt "$low" ] || fail "energy: $low uJ at the lowest speed, $high uJ at the highest"
pass energy
say "{\"figure\":\"uJ of a busy second\",\"powersave\":$low,\"performance\":$high}"

# Temperature, battery, mains.
t=/sys/class/thermal/thermal_zone0
expect zone-type vpower "$(cat $t/type)"
[ "$(cat $t/temp)" -ge 30000 ]
echo 71000 >/sys/kernel/debug/vpower/temp_mc
expect temperature 71000 "$(cat $t/temp)"
ps=/sys/class/power_supply
expect "on mains" "1 Full" "$(cat $ps/AC/online) $(cat $ps/BAT0/status)"
echo 0 >/sys/kernel/debug/vpower/mains
expect "on battery" "0 Discharging" "$(cat $ps/AC/online) $(cat $ps/BAT0/status)"
echo 17 >/sys/kernel/debug/vpower/capacity
expect capacity 17 "$(cat $ps/BAT0/capacity)"

# Hotplug, and out again.
echo 0 >$CPU/cpu3/online
expect offline "2" "$(cat $CPU/cpufreq/policy2/affected_cpus)"
echo 1 >$CPU/cpu3/online
expect online "2 3" "$(cat $CPU/cpufreq/policy2/affected_cpus)"
governor performance
rmmod vpower
[ ! -d $CPU/cpufreq/policy0 ] && [ ! -d $zone ]
pass unloaded
insmod /mods/vpower.ko
expect "one domain" "0 1 2 3" "$(cat $p/affected_cpus)"
