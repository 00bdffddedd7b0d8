# wattwised under systemd, by the package's own units: killed, started again, killed too often, stopped, reloaded, where nothing can
# be set. What follows the daemon's end is systemd's doing alone: this script only kills, waits and looks.
load cpufreq_ondemand cpufreq_powersave cpufreq_userspace
insmod /mods/vpower.ko domains=0-1,2-3 latency_ns=20000
governor ondemand
mkdir -p /etc/wattwise /etc/elsewhere

settings() { # all that the daemon may set, in $found; without another process, that a look takes no time
    found=
    for file in $CPU/cpufreq/policy*/scaling_governor $CPU/cpufreq/policy*/scaling_m*_freq $CPU/cpu*/power/pm_qos_resume_latency_us; do
        read -r value <"$file"
        found="$found $value"
    done
}
is_found() { settings && [ "$found" = "$before" ]; }
clock() { # ms since the boot, in $now
    read -r now rest </proc/uptime
    now=${now%.*}${now#*.}0
}
of() { systemctl show -P "$1" "${2:-wattwised}"; } # of PROPERTY [UNIT]
now_governor() { cat $CPU/cpufreq/policy2/scaling_governor; }
until_up() { # until systemd has started one that is not $pid; its number is in $pid
    clock
    give_up=$((now + 60000))
    before_it=$pid
    while pid=$(of MainPID) && { [ "$pid" = 0 ] || [ "$pid" = "$before_it" ]; }; do
        clock
        [ $now -lt $give_up ] || fail "systemd does not start it: $(of ActiveState), $(of Result)"
        sleep 0.05
    done
}
until_found() { # until all is as found; how long that took, in $took
    clock
    killed=$now
    until is_found; do
        clock
        [ $((now - killed)) -lt 30000 ] || fail "not as found: $found"
        sleep 0.01
    done
    clock
    took=$((now - killed))
}
settings
before=$found
# Its folder is watched, but not the file behind a link: what a reload does is the reload's doing.
ln -s /etc/elsewhere/profiles.toml /etc/wattwise/profiles.toml
profile() { # profile GOVERNOR
    printf '[profile.day]\nspeed = "%s"\nsettings = ["latency=100us"]\n' "$1" >/etc/elsewhere/profiles.toml
}
profile performance

systemctl enable wattwised || fail "enable"
systemctl start wattwised || fail "start: $(of Result)"
wattwise profile set day >/tmp/said || fail "profile set: $(cat /tmp/said)"
until_is started performance now_governor
pid=$(of MainPID)
profile powersave
systemctl reload wattwised || fail "reload: $(of Result)"
until_is reloaded powersave now_governor
expect "reloaded without a new start" "$pid" "$(of MainPID)"
profile performance
systemctl reload wattwised

# 20 kills at random moments, from systemd's start of it on. The counter of starts is set back: too many of them is another check.
last=0 in_force=0 pid=0
for n in $(seq 20); do
    until_up
    systemctl reset-failed wattwised
    wait_ms=$((RANDOM % 2500))
    sleep $((wait_ms / 1000)).$(printf %03d $((wait_ms % 1000)))
    kill -9 "$pid"
    is_found || in_force=$((in_force + 1))
    until_found
    say "{\"kill\":$n,\"after_ms\":$wait_ms,\"took_ms\":$took}"
    # Nobody else has put it back: the next one is not started yet.
    [ "$(of MainPID)" = 0 ] || fail "kill $n: as found only when the next daemon was there"
done
[ $in_force -gt 0 ] || fail "no kill came while anything was in force"
say "{\"kills\":20,\"in_force\":$in_force}"
pass "20 kills"
until_is "started again, with the profile that was chosen" performance now_governor

# Killed too often within a minute, it stays down, and the restorer's own unit runs.
systemctl reset-failed wattwised
systemctl restart wattwised
for n in $(seq 4); do
    until_up
    kill -9 "$pid"
done
until_is "too many failures" failed of ActiveState
expect "and no more starts" 4 "$(of NRestarts)"
until_is "the restorer's unit has run" success of Result wattwise-restore
[ "$(of ExecMainExitTimestampMonotonic wattwise-restore)" != 0 ] || fail "the restorer's unit has not run"
is_found || fail "too many failures: not as found: $found"
pass "and all is as found"

systemctl reset-failed wattwised
systemctl start wattwised
until_is "started after that" performance now_governor
systemctl stop wattwised || fail "stop: $(of Result)"
is_found || fail "stopped: not as found: $found"
expect stopped "inactive success" "$(of ActiveState) $(of Result)"

# Where it cannot get better by itself it is not started again.
rmmod vpower
got=$(code systemctl start wattwised)
[ "$got" != 0 ] || fail "started where nothing can be set"
until_is "nothing can be set here" "failed 3" eval 'echo "$(of ActiveState) $(of ExecMainStatus)"'
sleep 5
expect "and no loop of starts" "0 failed" "$(of NRestarts) $(of ActiveState)"
