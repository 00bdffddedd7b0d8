# wattwised on vpower: profiles follow its mains, policies are followed live and recorded for the judge, and whatever ends the
# daemon leaves the files as they were found. There is no systemd in this guest: what its units start is started here.
load cpufreq_ondemand cpufreq_powersave cpufreq_userspace
insmod /mods/vpower.ko domains=0-1,2-3 latency_ns=20000
governor ondemand
mkdir -p /run /var/lib /etc/wattwise
settings() {
    cat $CPU/cpufreq/policy*/scaling_governor $CPU/cpufreq/policy*/scaling_min_freq $CPU/cpufreq/policy*/scaling_max_freq \
        $CPU/cpu*/power/pm_qos_resume_latency_us
}
before=$(settings)
now_governor() { cat $CPU/cpufreq/policy2/scaling_governor; }
daemon() { # daemon PROFILE
    wattwised --bus none --profile "$1" >>/out/daemon.txt 2>&1 &
    pid=$!
}
mains() { echo "$1" >/sys/kernel/debug/vpower/mains; }
loads() {
    wwload steady cpu=2 share=100 ms=1500
    sleep 2
    wwload burst cpu=3 busy_ms=80 idle_ms=220 ms=3000 &
    wwload burst cpu=0 busy_ms=300 idle_ms=900 ms=4000
    wait $!
    sleep 2
}
cat >/etc/wattwise/profiles.toml <<'END'
[daemon]
record = "/out/decisions.jsonl"
look = "1s"
[profile.day]
speed = "performance"
settings = ["latency=100us"]
[[profile.day.when]]
power = "battery"
speed = "powerd:load=max"
[profile.burst]
speed = "burst"
END

# Mains come and go; vpower sends no event of its own, as some USB-C chargers.
daemon day
until_is "on mains" performance now_governor
expect latency 100 "$(cat $CPU/cpu1/power/pm_qos_resume_latency_us)"
mains 0
until_is "on battery" userspace now_governor
loads
mains 1
until_is "on mains again" performance now_governor
mains 0
until_is "and on battery" userspace now_governor
sleep 3

# Another profile by its socket, as root.
wattwise profile set burst >/tmp/said || fail "profile set: $(cat /tmp/said)"
grep -q "^followed  burst" /tmp/said || fail "burst is not followed: $(cat /tmp/said)"
pass "burst is followed"
loads
echo 0 >$CPU/cpu3/online
sleep 2
echo 1 >$CPU/cpu3/online
sleep 3
wattwise profile status --json >/out/status.json
kill -TERM $pid
wait $pid || fail "the daemon ended with $?"
[ "$(settings)" = "$before" ] || fail "not as found: $(settings)"
pass "ended, and as found"

# Killed at moments of its start and after it; the restorer as its unit starts it.
rm /etc/wattwise/profiles.toml
left=0
for n in $(seq 20); do
    daemon performance
    sleep 0.$((n * 37 % 90 / 10))$((n * 37 % 10))
    kill -9 $pid
    wait $pid 2>/dev/null || true
    [ "$(settings)" = "$before" ] || left=$((left + 1))
    wattwised --restore >/tmp/said 2>&1 || fail "restorer: $(tail -n 1 /tmp/said)"
    [ "$(settings)" = "$before" ] || fail "kill $n: not as found: $(settings)"
done
[ $left -gt 0 ] || fail "no kill came while anything was in force"
say "{\"kills\":20,\"in_force\":$left}"
pass "20 kills"
