# powerctl's back end for the processor's registers, with vpower's in their place: a register for each logical CPU, as
# hardware has them, and what a core makes of those of its two threads. CPUs 0 and 1 are a core, 2 and 3 another.
# T-states are sixteenths: IA32_CLOCK_MODULATION is 0x10 + T, or 0.
load cpufreq_ondemand cpufreq_powersave cpufreq_userspace
virtual() { insmod /mods/vpower.ko domains=0,1,2,3 latency_ns=10000 notifiers=1; } # notifiers: powerctl comes and goes often
virtual
v=/sys/kernel/debug/vpower
knob() { echo "$2" >$v/$1; } # knob NAME VALUE
registers() { sed -n "s/^$1 //p" $v/registers; } # registers CPU: PERF_CTL, CLOCK_MODULATION, HWP_REQUEST
modulation() { registers $1 | cut -d ' ' -f 2; }
perf() { registers $1 | cut -d ' ' -f 1; }
hwp() { registers $1 | cut -d ' ' -f 3; }
duty() { sed -n "s/^$1 [0-9]* //p" $v/effective; } # duty CPU: sixteenths that pass, whatever was asked for
writes() { echo "$1 $2 $3" >$v/registers; } # writes CPU REGISTER VALUE: another than powerctl
hold() { # hold CPU FLAG VALUE: a thread that works there, with a profile or ("n") without
    >/tmp/on$1
    pctest on $1 $2 $3 >/tmp/on$1 &
    eval "pid$1=$!"
    while [ ! -s /tmp/on$1 ]; do sleep 0.1; done
}
release() { # release CPU...
    for cpu; do
        eval "kill \$pid$cpu"
        eval "wait \$pid$cpu" 2>/dev/null || true
    done
    sleep 0.3
}
becomes() { # becomes NAME WANTED COMMAND...: within some seconds
    name=$1 wanted=$2 found=""
    shift 2
    for tenth in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
        found=$("$@")
        [ "$found" != "$wanted" ] || break
        sleep 0.1
    done
    expect "$name" "$wanted" "$found"
}
on() { insmod /mods/powerctl.ko backend=msr registers=vpower; } # with the registers that vpower has now
off() { rmmod powerctl; }
said() { dmesg -c >/tmp/said; }      # what was said before is no matter
says() { # says NAME PATTERN: the kernel's log since
    dmesg | grep -q "powerctl: .*$2" || fail "$1: not in the log: $2"
    pass "$1"
}
T=0x19a P=0x199 H=0x774 ON=0x770
governor userspace

# The SDM's two rules. By the usual one, the lowest of a core's threads, a thread with 1/16 must not slow its neighbour.
on
expect "T-states and P-states" "0x13 1" "$(pctest can)"
hold 3 n 0
hold 2 t 1
expect "lowest: a stranger is not slowed down by its sibling" 16 "$(duty 3)"
release 3
hold 3 t 8
becomes "lowest: two profiles get the faster one" "8 8" eval 'echo $(duty 2) $(duty 3)'
expect "both threads' registers hold it" "18 18" "$(modulation 2) $(modulation 3)"
release 3
hold 3 n 0
becomes "lowest: a stranger that comes is free" 16 duty 3
release 2 3
expect "other cores are left alone" "0 0" "$(modulation 0) $(modulation 1)"
# Switching all the time, the faster of the two wishes: a stranger and two profiles on each CPU, then all strangers.
for cpu in 2 3; do
    hold $cpu t 4
    eval "first$cpu=\$pid$cpu"
    hold $cpu t 12
done
sleep 2
for pid in $first2 $first3 $pid2 $pid3; do kill $pid; done
for pid in $first2 $first3 $pid2 $pid3; do wait $pid 2>/dev/null || true; done
becomes "lowest: nothing is left of a crowd" "0 0 16" eval 'echo $(modulation 2) $(modulation 3) $(duty 3)'
off

# Where the highest wins each thread has its own register, and no sibling is interrupted.
knob highest 1
knob model $((0x1a))
on
hold 3 n 0
hold 2 t 1
expect "highest: its own register has its own T-state" "11 0" "$(modulation 2) $(modulation 3)"
expect "highest: the stranger is free" 16 "$(duty 3)"
release 3
hold 3 t 8
expect "highest: two profiles, the faster by the core itself" "11 18 8" "$(modulation 2) $(modulation 3) $(duty 2)"
release 2 3
# Each CPU is a domain of its own here: what protects it from heat is looked at on another way.
writes 2 $T 0x14
hold 2 t 8
becomes "highest: no profile lifts a T-state that others set" 14 modulation 2
release 2
expect "highest: nor does its end" 14 "$(modulation 2)"
writes 2 $T 0
expect "no P-states where the bus has another clock" "0x11 1" "$(pctest can)"
off

# Models by the SDM's list, and beside it. With nothing to set the module says which rule holds, and is not loaded.
said
knob ignores $((T))
knob est 0
rule() { # rule FAMILY MODEL: what the module says of it
    knob family $(($1))
    knob model $(($2))
    dmesg -c >/dev/null
    on 2>/dev/null || true
    dmesg | sed -n 's/.*duty cycle of a core.s threads counts: \(.*\)/\1/p' | tail -n 1 # insmod tries twice
}
listed="" others=""
for model in 1A 1C 1E 1F 25 26 27 2C 2E 2F 35 36; do listed="$listed$(rule 6 0x$model) "; done
for model in 0F 17 2A 2D 37 3C 55 5E 6A 8E 97; do others="$others$(rule 6 0x$model) "; done
expect "models of the list" "$(printf 'highest %.0s' 1 2 3 4 5 6 7 8 9 10 11 12)" "$listed"
expect "other models" "$(printf 'lowest %.0s' 1 2 3 4 5 6 7 8 9 10 11)" "$others"
expect "family 0F" "highest highest" "$(rule 15 2) $(rule 15 6)"
knob ignores 0
knob est 1
knob highest 0
knob family 6
knob model 94

# What the processor is.
knob extended 0
on
expect "steps of two without the extension" "0x13 2" "$(pctest can)"
expect "an odd T-state without the extension" ERANGE "$(pctest asks t 3)"
expect "an even one" ok "$(pctest asks t 6)"
off
knob extended 1
knob clock_modulation 0
on
expect "no clock modulation" "0x12 1" "$(pctest can)"
off
knob clock_modulation 1
knob ignores $((T))
on
expect "a register that forgets what is written" "0x12 1" "$(pctest can)"
off
knob ignores 0
knob vendor_intel 0
said
refused "AMD's have no such registers" on
says "AMD is told why" "only Intel"
knob vendor_intel 1
refused "QEMU's registers keep nothing" insmod /mods/powerctl.ko backend=msr
refused "no such registers" insmod /mods/powerctl.ko backend=msr registers=none

# HWP on: PERF_CTL is ignored, so no P-states. HWP off: HWP_REQUEST faults.
knob strict 1
on
expect "HWP off: P-states, no requests" "0x13 1" "$(pctest can)"
expect "no HWP request" EOPNOTSUPP "$(pctest asks d 8)"
off
for cpu in 0 1 2 3; do writes $cpu $ON 1; done
on
expect "HWP on: requests, no P-states" "0x1d 1" "$(pctest can)"
expect "no P-state" EOPNOTSUPP "$(pctest asks p 800000)"
hold 2 d 8
hold 3 d 12
becomes "HWP: siblings get the faster one" "800c0c01 800c0c01" eval 'echo $(hwp 2) $(hwp 3)'
release 2 3
expect "HWP: the request is back" "80002a01 80002a01" "$(hwp 2) $(hwp 3)"
# Another writer meanwhile: what it wrote stays, under profiles and after them.
hold 2 d 8
hold 3 d 8
becomes "HWP: in force" 80080801 hwp 2
writes 2 $H 0xc0002005
release 2 3
becomes "HWP_REQUEST as another wrote it" c0002005 hwp 2
expect "its sibling has its own" 80002a01 "$(hwp 3)"
writes 3 $H 0xc0001e03
off
expect "unloaded, HWP_REQUEST is never an old one" "c0002005 c0001e03" "$(hwp 2) $(hwp 3)"
for cpu in 0 1 2 3; do writes $cpu $H 0x80002a01; done

# Who has the speeds at load: every policy, and drivers that govern by themselves.
knob status active
expect "a driver that governs is there" vpower_active "$(cat $CPU/cpufreq/policy0/scaling_driver)"
on
expect "a driver that governs: no requests" "0x11 1" "$(pctest can)"
off
knob status passive
governor userspace
echo schedutil >$CPU/cpufreq/policy2/scaling_governor
on
expect "one policy under schedutil: no speeds" "0x11 1" "$(pctest can)"
off
governor performance
on
expect "free under a fixed governor" "0x1d 1" "$(pctest can)"
off
knob status off
on
expect "free without a driver" "0x1d 1" "$(pctest can)"
off
# The rest is without HWP, which only a reset of the machine switches off.
rmmod vpower
virtual
knob strict 1
knob driver_writes 1

# Who has them later.
fastest() {
    governor userspace
    for policy in $CPU/cpufreq/policy*; do echo 2400000 >$policy/scaling_setspeed; done
}
fastest
on
hold 2 p 800000
hold 3 p 800000
expect "a clock in force" "800 800" "$(perf 2) $(perf 3)"
said
echo ondemand >$CPU/cpufreq/policy0/scaling_governor
becomes "a governor comes: withdrawn" "0x11 1" pctest can
expect "a governor comes: the default is back" "1800 1800" "$(perf 2) $(perf 3)"
expect "a governor comes: EBUSY" EBUSY "$(pctest asks p 800000)"
expect "T-states are no governor's" ok "$(pctest asks t 8)"
says "a governor comes: told" "withdrawn"
echo userspace >$CPU/cpufreq/policy0/scaling_governor
becomes "it goes: given back" "0x13 1" pctest can
becomes "it goes: profiles have their clock again" "800 800" eval 'echo $(perf 2) $(perf 3)'
knob status active
becomes "another driver comes: withdrawn" "0x11 1" pctest can
expect "another driver comes: the default is back" "1800 1800" "$(perf 2) $(perf 3)"
# As intel_pstate switches it on.
for cpu in 0 1 2 3; do writes $cpu $ON 1; done
knob status off
sleep 0.5
expect "without a driver, but with HWP on: no P-states" "0x11 1" "$(pctest can)"
release 2 3
off
rmmod vpower
virtual
knob driver_writes 1
fastest
# The kernel's own driver sets another speed under a profile: that is the default then.
on
hold 2 p 800000
hold 3 p 800000
echo 1600000 >$CPU/cpufreq/policy2/scaling_setspeed
release 2 3
becomes "a speed set under a profile stays" "1000 1800" eval 'echo $(perf 2) $(perf 3)'
becomes "the lowest default follows" 1600000 eval 'pctest caps | sed "s/.*khz.:.[0-9]*,\([0-9]*\),.*/\1/"'
off
expect "unloaded, PERF_CTL is never an old one" "1000 1800" "$(perf 2) $(perf 3)"
# The other back end for speeds: the same governor, the same hands off.
governor userspace
echo 2400000 >$CPU/cpufreq/policy2/scaling_setspeed
insmod /mods/powerctl.ko backend=cpufreq
hold 2 p 800000
becomes "cpufreq: a clock in force" 800000 cat $CPU/cpufreq/policy2/scaling_cur_freq
echo performance >$CPU/cpufreq/policy2/scaling_governor
sleep 0.5
echo ondemand >$CPU/cpufreq/policy0/scaling_governor
becomes "cpufreq: withdrawn" "0x10 16" pctest can
expect "cpufreq: the governor's speed" 2400000 "$(cat $CPU/cpufreq/policy2/scaling_cur_freq)"
echo userspace >$CPU/cpufreq/policy0/scaling_governor
becomes "cpufreq: given back" 800000 cat $CPU/cpufreq/policy2/scaling_cur_freq
knob status active
becomes "cpufreq: another driver" "0x10 16" pctest can
release 2
off
knob status passive
governor ondemand
refused "cpufreq: a governor is there" insmod /mods/powerctl.ko backend=cpufreq
governor userspace

# Writes that fail. The T-state is written, the clock is not; then the thread is gone.
fastest
on
knob fail_reg $((P))
knob fail_msr 1
hold 1 b 800000
hold 0 b 800000
release 0 1
becomes "half a write, then the default" "1800 0 1800 0" eval 'echo $(perf 0) $(modulation 0) $(perf 1) $(modulation 1)'
knob fail_msr 0
knob fail_reg 0
# The way back fails, and nobody comes who would try again.
hold 1 t 4
hold 0 t 4
becomes "in force" "14 14" eval 'echo $(modulation 0) $(modulation 1)'
knob fail_msr 3
release 0 1
becomes "the way back is tried again" "0 0" eval 'echo $(modulation 0) $(modulation 1)'
knob fail_msr 0
# For longer.
hold 1 t 4
hold 0 t 4
becomes "in force" "14 14" eval 'echo $(modulation 0) $(modulation 1)'
said
knob fail_msr 100000
release 0 1
sleep 1
says "registers that refuse" "refuse to be written"
knob fail_msr 0
becomes "the way back is tried for long" "0 0" eval 'echo $(modulation 0) $(modulation 1)'
off

# What firmware left: cleared, put back.
for cpu in 0 1 2 3; do writes $cpu $T 0x1a; done
writes 1 $T 0x1000014
said
on
expect "firmware's T-state is cleared" "0 1000000 0 0" "$(modulation 0) $(modulation 1) $(modulation 2) $(modulation 3)"
says "firmware's T-state is told" "CPU 2: firmware left a T-state (0x1a)"
hold 2 t 8
hold 3 t 8
becomes "in force" "18 18" eval 'echo $(modulation 2) $(modulation 3)'
release 2 3
expect "cleared again" "0 0" "$(modulation 2) $(modulation 3)"
knob fail_msr 2
off
expect "unloaded, firmware's is back" "1a 1000014 1a 1a" "$(modulation 0) $(modulation 1) $(modulation 2) $(modulation 3)"
knob fail_msr 0
on
said
knob fail_reg $((T))
knob fail_msr 100
off
knob fail_msr 0
knob fail_reg 0
says "what cannot be put back is told" "CPU 2: register 0x19a does not take back 0x1a"
for cpu in 0 1 2 3; do writes $cpu $T 0; done
# One that is set later protects from heat: no profile lifts it, and it stays.
on
writes 2 $T 0x14
hold 2 t 8
hold 3 t 8
becomes "no profile lifts a T-state that others set" "14 14" eval 'echo $(modulation 2) $(modulation 3)'
release 2 3
expect "nor does its end" 14 "$(modulation 2)"
off
expect "nor unloading" "14 0" "$(modulation 2) $(modulation 3)"
writes 2 $T 0

# CPUs go and come; firmware has been at those that come, or not.
on
hold 2 t 4
hold 3 t 4
becomes "in force" "14 14" eval 'echo $(modulation 2) $(modulation 3)'
echo 0 >$CPU/cpu3/online
becomes "a CPU that goes has the default" 0 modulation 3
sleep 0.3
echo 1 >$CPU/cpu3/online
becomes "a stranger's sibling" 16 duty 3
release 2 3
knob forget 1
knob firmware_duty $((0x12))
echo 0 >$CPU/cpu3/online
said
echo 1 >$CPU/cpu3/online
becomes "a CPU that comes is cleared" 0 modulation 3
says "a CPU that comes is told" "CPU 3: firmware left a T-state (0x12)"

# Suspended: every CPU's registers are its firmware's again, the first one's too.
echo deep >/sys/power/mem_sleep
echo processors >/sys/power/pm_test
echo 1 >/sys/module/suspend/parameters/pm_test_delay
hold 0 t 4
hold 1 t 4
becomes "in force" "14 14" eval 'echo $(modulation 0) $(modulation 1)'
echo mem >/sys/power/state || fail "suspend: $?"
becomes "profiles after a suspend" "14 14" eval 'echo $(modulation 0) $(modulation 1)'
release 0 1
becomes "cleared after a suspend" "0 0 0 0" eval 'echo $(modulation 0) $(modulation 1) $(modulation 2) $(modulation 3)'
off
expect "unloaded, what firmware left at the wake-up" "12 12 12 12" \
    "$(modulation 0) $(modulation 1) $(modulation 2) $(modulation 3)"
