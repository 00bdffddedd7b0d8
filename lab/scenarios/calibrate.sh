# wattwise calibrate on vpower's watts: killed half way, restored, gone on with; what it finds goes home to the judge.
load cpufreq_userspace
insmod /mods/vpower.ko $VPOWER
governor schedutil
HOME=/tmp
export HOME
cd /tmp
settings() {
    cat $CPU/cpufreq/policy*/scaling_governor $CPU/cpufreq/policy*/scaling_min_freq $CPU/cpufreq/policy*/scaling_max_freq \
        $CPU/cpu*/cpuidle/state*/disable
}
before=$(settings)
up() {
    cut -d' ' -f1 /proc/uptime
}
calibrate() {
    exec wattwise calibrate --budget 4min -o /out/found.toml --json
}
started=$(up)
# Killed in the middle of a window; by exec the process is wattwise itself, and no shell around it.
calibrate >/tmp/killed.json 2>/tmp/killed.txt &
pid=$!
while [ "$(wc -l 2>/dev/null </out/found.windows.jsonl || echo 0)" -lt 5 ]; do
    sleep 0.3
    kill -0 $pid 2>/dev/null || fail "calibrate: $(tail -n 1 /tmp/killed.txt)"
done
while [ "$(settings)" = "$before" ]; do sleep 0.1; done
kill -9 $pid
wait $pid 2>/dev/null || true
# Its guard puts back, and says so where the calibration would have spoken.
for i in 1 2 3 4 5 6 7 8 9 10; do
    grep -q 'was killed and had left' /tmp/killed.txt && break
    sleep 0.5
done
grep -q 'was killed and had left' /tmp/killed.txt || fail "the guard said nothing: $(tail -n 1 /tmp/killed.txt)"
[ "$(settings)" = "$before" ] || fail "the guard left something: $(settings)"
pass "restored after SIGKILL"
kept=$(wc -l </out/found.windows.jsonl)
(calibrate) >/out/calibrated.json 2>/out/said.txt || {
    # On the console: what a folder that is not returned would have held.
    cat /out/found.windows.jsonl || true
    fail "calibrate: $(tail -n 3 /out/said.txt)"
}
say "{\"took_s\":$(awk "BEGIN{print $(up)-$started}"),\"kept\":$kept}"
[ "$(settings)" = "$before" ] || fail "settings were not put back: $(settings)"
pass "settings are back"
[ ! -e /out/found.windows.jsonl ] || fail "observations are left"
pass "gone on with, and done"
