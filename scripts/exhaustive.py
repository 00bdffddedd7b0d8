#!/usr/bin/env python3
"""Holds the recommendation of `wattwise compare` against an exhaustive scan, apart from its search.

    scripts/exhaustive.py WATTWISE [MACHINE ...] [-- WORKLOAD ...]     the cases, as CSV
    scripts/exhaustive.py --table CSV                                  what they come to, for docs/notes/answers.md

For each workload on each machine: every limit of the clock from 50 to 100 % by 1 %, of the reference policy, of each word of
EPP where it has one, of schedutil and of the highest speed; and each C-state limit of the reference. All run once, those
that differ in 16 replicas; the best 6 that keep the limit of time there, and what `compare` recommends by itself, run in 64 others.
Printed, as CSV: the best admissible energy of these, the recommendation's, the difference in per cent, and whether the
interval that `compare` printed holds what is seen here.
"""
import collections
import csv
import json
import subprocess
import sys

SCAN, CHECK, FINALISTS = "16", "64", 6


def compare(wattwise, workload, machine, policies, replicas, reference=None):
    words = [wattwise, "compare", workload, "-m", machine, "--json"] + (["--replicas", replicas] if replicas else ["--exact"])
    for policy in policies:
        words += ["-p", policy]
    if reference:
        words += ["--reference", reference]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"exit code {done.returncode}")
    return json.loads(done.stdout)


def speeds(reference, tried):
    """The speed policies that the machine's system offers, without limits: those that compare tried."""
    bases = {reference}
    for policy in tried:
        base = policy.split("+max=")[0].split("+cmax=")[0].split("+noboost")[0].split("+power=")[0]
        if base == "performance" or base == "schedutil" or base.startswith(("hwp", "intel_pstate", "amd-pstate-epp")):
            bases.add(base)
    return sorted(bases)


def apart(wattwise, workload, machine, policies, reference):
    """One policy of each group whose nominal runs are equal in every digit: their limits are between the same two levels. Of work
    that ends none that takes 1.3 times the reference's time: the limit is 1.1."""
    nominal = compare(wattwise, workload, machine, policies, None, reference)
    runs = {}
    for row in nominal["results"]:
        runs.setdefault((row["energy_j"], row["elapsed_s"], row["window_energy_j"]), row)
    ends = nominal["judged"]["kind"] == "makespan"
    return [row["policy"] for row in runs.values() if not ends or row["slowdown"] < 1.3]


def case(wattwise, workload, machine):
    own = compare(wattwise, workload, machine, [], CHECK)
    recommended, reference = own["answer"]["recommended"], own["reference"]
    tried = [r["policy"] for r in own["results"]]
    bases = speeds(reference, tried)
    scans = bases + [f"{base}+max=50%..99%:by1%" for base in bases if "+" not in base]
    states = [p for p in tried if p.startswith(reference + "+cmax=") and "+max" not in p]
    scan = compare(wattwise, workload, machine, apart(wattwise, workload, machine, scans + states, reference), SCAN, reference)
    fit = [r for r in scan["results"] if r["admissible"]]
    fit.sort(key=lambda r: r["uncertain"]["energy_ratio"]["median"])
    best = [r["policy"] for r in fit[:FINALISTS]]
    check = compare(wattwise, workload, machine, sorted(set(best + [recommended])), CHECK, reference)
    rows = {r["policy"]: r for r in check["results"]}
    admissible = [r for r in check["results"] if r["admissible"]]
    least = min(admissible, key=lambda r: r["uncertain"]["energy_ratio"]["median"])
    ratio = lambda r: r["uncertain"]["energy_ratio"]["median"]
    mine = rows[recommended]
    regret = 100 * (ratio(mine) / ratio(least) - 1)
    row = next(r for r in own["results"] if r["policy"] == recommended)
    printed = row["uncertain"]["energy_ratio"]
    holds = printed["low"] - 0.002 <= ratio(mine) <= printed["high"] + 0.002
    saves = printed["high"] < 0.99
    return [machine, workload, len(scan["results"]), own["answer"]["tried"], recommended, mine["admissible"],
            least["policy"], f"{regret:.2f}", holds, f"{100 * (printed['low'] - 1):.1f}", f"{100 * (printed['high'] - 1):.1f}",
            saves, bool(own["answer"]["winner"])]


def counts(name, rows):
    """One line of the table: how often, and how much."""
    regrets = [float(r["regret_percent"]) for r in rows]
    true = lambda key: sum(r[key] == "True" for r in rows)
    cells = [name, len(rows), sum(r <= 1 for r in regrets), f"{max(regrets):.2f} %", true("interval_holds"), true("saves_1_percent"), true("winner")]
    return "| " + " | ".join(map(str, cells)) + " |"


def in_the_way(row):
    """Why a case has no recommendation that surely saves at least 1 %."""
    low, high = float(row["change_low_percent"]), float(row["change_high_percent"])
    if row["saves_1_percent"] == "True":
        return "it surely saves at least 1 %"
    if low == 0 and high == 0:
        found = float(row["regret_percent"]) > 1
        return "the reference is kept, a scan finds more than 1 %" if found else "the reference is kept, no scan finds 1 % more"
    if high < 0:
        return "it surely saves, but perhaps less than 1 %"
    return "its interval reaches over nothing: the machine's figures are too unsure"


def table(path):
    rows = [r for r in csv.DictReader(open(path)) if r["winner"]]
    machines = list(dict.fromkeys(r["machine"] for r in rows))
    print("| machine | works | within 1 % | greatest regret | holds | saves at least 1 % for sure | a winner is named |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for machine in machines:
        print(counts(machine, [r for r in rows if r["machine"] == machine]))
    print(counts("all", rows))
    print("\n| the recommendation | cases |\n|---|---:|")
    for why, n in collections.Counter(map(in_the_way, rows)).most_common():
        print(f"| {why} | {n} |")


def main():
    args = sys.argv[1:]
    if args[:1] == ["--table"]:
        return table(args[1])
    wattwise, args = args[0], args[1:]
    at = args.index("--") if "--" in args else len(args)
    machines = args[:at] or ["alderlake-p-laptop", "i7-4510u", "thinkpad-r51", "xeon-4210"]
    workloads = args[at + 1:] or ["build", "desktop", "video-play", "sqlite"]
    head = "machine,workload,scanned,tried,recommended,admissible,best,regret_percent,interval_holds,change_low_percent,change_high_percent,saves_1_percent,winner"
    print(head, flush=True)
    for machine in machines:
        for workload in workloads:
            try:
                print(",".join(map(str, case(wattwise, workload, machine))), flush=True)
            except RuntimeError as error:
                print(f"{machine},{workload},{error}", flush=True)


main()
