#!/usr/bin/env python3
"""What a power daemon costs: CPU time, wake-ups, system calls, forks and memory, in turns over the same mounted machine.

    scripts/daemon-cost.py [--seconds 120] [--rounds 2] [--machine server-64] [--bin target/debug]

A machine of the emulator is mounted, which needs root or fusermount3, and each daemon runs on it by turns:

  balanced + prove   wattwised with the profile balanced, proving what it saves (prove = "untouched")
  balanced           the same without a proof
  powerd live        wattwised following powerd: /proc/stat every 250 ms, on all domains
  powerd in C        FreeBSD's rule (lab/guest/powerd.c): /proc/stat every 250 ms, one file written
  auto-cpufreq       a stand-in of auto-cpufreq 2's loop on battery, written anew (see below)

The time of the file system's server is not the daemon's and is not counted, but each access is a round trip to it, which costs the
daemon more than sysfs does. System calls and forks are counted in a turn of their own, under strace.

The stand-in does in each turn, every 2 s, what that loop does: reads the governors that there are, the supplies, all sensors, and
/proc/stat four times; starts its script of shell by a shell twice, for governor and preference, which writes every CPU's file; and writes
the file of boost. It imports nothing of psutil, whose start is not in it, and prints no table: it is cheaper than the original.
"""
import argparse
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SCRIPT = 'for f in "$1"/sys/devices/system/cpu/cpufreq/policy*/"$2"; do echo "$3" > "$f"; done'


def read(path):
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""


def auto_cpufreq(root):
    """The stand-in; ends by a signal."""
    cpu = f"{root}/sys/devices/system/cpu"

    def control(file, value):
        # auto-cpufreq has a shell start its script, which is run by a shell.
        subprocess.run(f"sh -c '{SCRIPT}' script {root} {file} {value} 2>/dev/null; :", shell=True, check=False)

    def load():
        words = read(f"{root}/proc/stat").split("\n")[0].split()[1:]
        return [int(w) for w in words]

    while True:
        governors = read(f"{cpu}/cpu0/cpufreq/scaling_available_governors").split()
        for supply in glob.glob(f"{root}/sys/class/power_supply/*"):
            for file in ("type", "online", "status", "capacity"):
                read(f"{supply}/{file}")
        for sensor in glob.glob(f"{root}/sys/class/hwmon/hwmon*/temp*_input"):
            read(sensor)
        control("scaling_governor", "powersave" if "powersave" in governors else "schedutil")
        if os.path.exists(f"{cpu}/cpu0/cpufreq/energy_performance_preference"):
            control("energy_performance_preference", "balance_power")
        for _ in range(4):
            load()
        try:
            with open(f"{cpu}/cpufreq/boost", "w") as file:
                file.write("0")
        except OSError:
            pass
        time.sleep(2)


class Cost:
    """What a process and its children have used."""

    def __init__(self, pid):
        tasks = glob.glob(f"/proc/{pid}/task/*")
        self.own_s = sum(int(read(f"{t}/schedstat").split()[0]) for t in tasks if read(f"{t}/schedstat")) / 1e9
        after = read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
        # Fields 16 and 17 of proc(5), counted from the one after the name.
        self.children_s = (int(after[13]) + int(after[14])) / os.sysconf("SC_CLK_TCK")
        status = [read(f"{t}/status") for t in tasks]
        self.wakeups = sum(int(m) for s in status for m in re.findall(r"^voluntary_ctxt_switches:\s+(\d+)", s, re.M))
        peak = re.search(r"^VmHWM:\s+(\d+)", read(f"/proc/{pid}/status"), re.M)
        self.peak_mib = int(peak.group(1)) / 1024 if peak else 0.0


def end(process):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def traced(process, seconds):
    """System calls and forks in a second."""
    with tempfile.NamedTemporaryFile("r") as out:
        strace = subprocess.Popen(["strace", "-f", "-qq", "-c", "-U", "calls,name", "-o", out.name, "-p", str(process.pid)])
        time.sleep(seconds)
        strace.send_signal(signal.SIGINT)
        strace.wait()
        rows = [line.split() for line in out.read().splitlines()]
    calls = {row[1]: int(row[0]) for row in rows if len(row) == 2 and row[0].isdigit() and row[1] != "total"}
    forks = sum(calls.get(name, 0) for name in ("clone", "clone3", "fork", "vfork"))
    return sum(calls.values()) / seconds, forks / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=120, help="length of a turn")
    parser.add_argument("--rounds", type=int, default=2, help="turns of each")
    parser.add_argument("--machine", default="server-64", help="a machine of the emulator")
    parser.add_argument("--bin", default="target/debug", help="where wattwise and wattwised are")
    parser.add_argument("--only", help="daemons whose name begins with this")
    parser.add_argument("--stand-in", metavar="ROOT", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.stand_in:
        auto_cpufreq(args.stand_in)
    here = os.path.dirname(os.path.abspath(__file__))
    work = tempfile.mkdtemp(prefix="daemon-cost-")
    root = f"{work}/machine"
    os.mkdir(root)
    mounted = subprocess.Popen([f"{args.bin}/wattwise", "--quiet", "emulate", args.machine, root, "--load", "20%"])
    try:
        while not os.path.exists(f"{root}/sys/devices/system/cpu"):
            if mounted.poll() is not None:
                sys.exit("daemon-cost: the machine is not mounted")
            time.sleep(0.1)
        powerd = f"{work}/powerd"
        subprocess.run(["cc", "-O2", "-o", powerd, f"{here}/../lab/guest/powerd.c"], check=True)
        results = measured(args, here, work, root, powerd)
    finally:
        end(mounted)
        shutil.rmtree(work, ignore_errors=True)
    print(f"{args.machine}, {args.rounds} turns of {args.seconds:.0f} s each, in percent of one CPU:")
    print(f"{'':18} {'CPU %':>8} {'children %':>10} {'wake-ups/s':>10} {'calls/s':>8} {'forks/s':>8} {'peak MiB':>8}")
    for name, (own, children, wakeups, calls, forks, peak) in results.items():
        print(f"{name:18} {own * 100:8.3f} {children * 100:10.3f} {wakeups:10.2f} {calls:8.1f} {forks:8.2f} {peak:8.1f}")


def measured(args, here, work, root, powerd):
    policy = f"{root}/sys/devices/system/cpu/cpufreq/policy0"
    configs = {
        "balanced + prove": '[daemon]\nprove = "untouched"\n',
        "balanced": "",
        "powerd live": '[profile.p]\nspeed = "powerd"\n[daemon]\ndefault = "p"\n',
    }
    commands = {}
    for name, text in configs.items():
        place = f"{work}/{name.replace(' ', '')}"
        os.mkdir(place)
        with open(f"{place}/profiles.toml", "w") as file:
            file.write(text)
        flags = ["--root", root, "--bus", "none", "--config", f"{place}/profiles.toml"]
        flags += [w for f in ("journal", "state", "socket") for w in (f"--{f}", f"{place}/{f}")]
        commands[name] = [f"{args.bin}/wattwised", *flags]
    if os.path.exists(f"{policy}/scaling_available_frequencies"):
        commands["powerd in C"] = [powerd, "hiadaptive", policy]
    commands["auto-cpufreq"] = [sys.executable, f"{here}/daemon-cost.py", "--stand-in", root]
    sums = {}
    for turn in range(args.rounds + 1):
        for name, command in commands.items():
            if args.only and not name.startswith(args.only):
                continue
            if name == "powerd in C":
                with open(f"{policy}/scaling_governor", "w") as file:
                    file.write("userspace")
            daemon = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            # A start reads all there is, and looks again after 1, 5 and 20 s.
            time.sleep(25)
            if daemon.poll() is not None:
                sys.exit(f"daemon-cost: {name} has ended: {' '.join(command)}")
            all_of = sums.setdefault(name, [0.0] * 6)
            if turn == args.rounds:
                all_of[3], all_of[4] = traced(daemon, min(args.seconds, 60))
            else:
                before = Cost(daemon.pid)
                time.sleep(args.seconds)
                after = Cost(daemon.pid)
                whole = args.seconds * args.rounds
                all_of[0] += (after.own_s - before.own_s) / whole
                all_of[1] += (after.children_s - before.children_s) / whole
                all_of[2] += (after.wakeups - before.wakeups) / whole
                all_of[5] = max(all_of[5], after.peak_mib)
            end(daemon)
    return sums


if __name__ == "__main__":
    main()
