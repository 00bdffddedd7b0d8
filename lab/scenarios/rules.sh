# Every attribute of power that can be written here, times odd values, in several states of the machine: the judge holds what the
# kernel answers against `hw::rules`. vpower's own attributes (its power zone) are its own code's, and no kernel's.
load cpufreq_ondemand cpufreq_conservative cpufreq_powersave cpufreq_userspace
insmod /mods/vpower.ko domains=0-1,2-3 latency_ns=20000
CPUS=/sys/devices/system/cpu
cat >/tmp/values <<'VALUES'
0
1
2
-1
10
11
95
100
101
255
1000
1001
100000
100001
400000
1000000
1600000
2000000
2400000
9999999
2147483648
4294967295
4294967296
99999999999999999999
+5
0x10
010
08
1.5
1x
x1
 1
1 
1\n
1\n\n
 
\n
1 2
on
off
ON
of
o
yes
no
n
t
True
performance
performance\n
performance 
powersave
ondemand
conservative
userspace
schedutil
schedutilx
Schedutil
menu
ladder
teo
haltpoll
nonsense
default
balance-power
enabled
disabled
step_wise
user_space
power_allocator
bang_bang
fair_share
n/a
n/a\n
N/A
VALUES
state() { # state NAME: all that is there, then all values to all attributes
    ruletest dump /proc/sys/kernel/osrelease /proc/cpuinfo /sys/devices/system/cpu /sys/devices/virtual/thermal >/out/$1.before
    ruletest try /tmp/values $CPUS/cpufreq $CPUS/cpuidle /sys/devices/virtual/thermal $CPUS/cpu1/cpuidle $CPUS/cpu1/power >/out/$1.tried
    ruletest dump /proc/sys/kernel/osrelease /proc/cpuinfo /sys/devices/system/cpu /sys/devices/virtual/thermal >/out/$1.after
    say "{\"state\":\"$1\"}"
}
for g in performance powersave ondemand conservative userspace schedutil; do
    governor $g
    state $g
done
governor powersave
for policy in $CPUS/cpufreq/policy*; do echo 1600000 >$policy/scaling_max_freq; echo 1200000 >$policy/scaling_min_freq; done
state limited
for policy in $CPUS/cpufreq/policy*; do echo 400000 >$policy/scaling_min_freq; echo 2400000 >$policy/scaling_max_freq; done
governor ondemand
echo 0 >$CPUS/cpu2/online
echo 0 >$CPUS/cpu3/online
state offline
echo 1 >$CPUS/cpu2/online
echo 1 >$CPUS/cpu3/online
# CPUs one by one: what is written back brings them on again.
ruletest dump /proc/sys/kernel/osrelease /proc/cpuinfo /sys/devices/system/cpu >/out/online.before
ruletest try /tmp/values $CPUS/cpu1/online $CPUS/cpu3/online >/out/online.tried
ruletest dump /proc/sys/kernel/osrelease /proc/cpuinfo /sys/devices/system/cpu >/out/online.after
say '{"state":"online"}'
