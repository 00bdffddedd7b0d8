# What the hook costs, in virtual time that follows instructions: no host's load is in it.
load cpufreq_userspace
# Newer kernels test their ciphers meanwhile, for some seconds after boot.
while grep -qs cryptomgr_test /proc/[0-9]*/comm; do sleep 0.1; done
trip() { # trip KIND ENDS
    say "{\"pingpong\":\"$1\",\"ns\":$(pctest pingpong 5000 $2)}"
}
insmod /mods/vpower.ko latency_ns=10000
governor userspace
for round in 1 2 3; do
    trip without 0
    insmod /mods/powerctl.ko backend=virtual
    trip loaded 0
    trip one 1
    trip both 2
    rmmod powerctl
    trip without 0
    rmmod vpower
    insmod /mods/vpower.ko latency_ns=10000 probe=1
    trip tracepoint 0
    rmmod vpower
    insmod /mods/vpower.ko latency_ns=10000
    governor userspace
done
insmod /mods/powerctl.ko backend=virtual
for round in 1 2 3; do
    set -- $(pctest latency $CPU/cpufreq/policy0/scaling_setspeed)
    say "{\"latency_ns\":$1,\"held_ns\":$2,\"opened_ns\":$3,\"refused_ns\":$4}"
done
rmmod powerctl
pass "costs measured"
