#!/usr/bin/env python3
"""Holds the recommendation of `wattwise compare` against an exhaustive scan, apart from its search.

    scripts/exhaustive.py WATTWISE [MACHINE ...] [-- WORKLOAD ...]     the cases, as CSV
    scripts/exhaustive.py --table CSV                                  what they come to, for docs/notes/answers.md

For each workload on each machine: every limit of the clock from 50 to 100 % by 1 %, of the reference policy, of each word of
EPP where it has one, of schedutil and of the highest speed; and each C-state limit of the reference. All run once, those
that differ in 16 replicas; the best 6 that keep the limit of time there, and what `compare` recommends by itself, run in 64 others.
A workload may be a mix (`laptop-day`, or several words in one: `"build=2 postgres"`): its energy is the mix's mean power, and a
policy must keep the limit of time in each work.
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
    words = [wattwise, "compare", *workload.split(), "-m", machine, "--json"] + (["--replicas", replicas] if replicas else ["--exact"])
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


def comparisons(result):
    """Of a mix each work's, else the one."""
    return result["comparisons"] if result.get("mix") else [result]


class Row:
    """A policy's figures, of one work or of a mix."""

    def __init__(self, row):
        self.policy = row["policy"]
        self.admissible = row["admissible"] if "admissible" in row else not row["over_limit_in"]
        self.ratio = row["power_ratio"] if "power_ratio" in row else row["uncertain"]["energy_ratio"]
        self.median = self.ratio["median"]
        self.over = row.get("over_limit_in", [])


def rows_of(result):
    return [Row(r) for r in (result["mix"]["policies"] if result.get("mix") else result["results"])]


def apart(wattwise, workload, machine, policies, reference):
    """One policy of each group whose nominal runs are equal in every digit: their limits are between the same two levels. Of work
    that ends none that takes 1.3 times the reference's time: the limit is 1.1."""
    works = comparisons(compare(wattwise, workload, machine, policies, None, reference))
    runs, slow = collections.defaultdict(list), set()
    for work in works:
        for row in work["results"]:
            runs[row["policy"]].append((row["energy_j"], row["elapsed_s"], row["window_energy_j"]))
            if work["judged"]["kind"] == "makespan" and row["slowdown"] >= 1.3:
                slow.add(row["policy"])
    alike = {}
    for policy, ran in runs.items():
        alike.setdefault(tuple(ran), policy)
    return [policy for policy in alike.values() if policy not in slow]


def case(wattwise, workload, machine):
    own = compare(wattwise, workload, machine, [], CHECK)
    answer = own["mix"]["answer"] if own.get("mix") else own["answer"]
    recommended, reference = answer["recommended"], comparisons(own)[0]["reference"]
    rows = rows_of(own)
    tried = [r.policy for r in rows]
    if own.get("mix"):
        # A mix's rows are of those alone that ran in all replicas of the race: its first work by itself names all policies.
        first = comparisons(own)[0]["workload"]["name"]
        tried = [r["policy"] for r in compare(wattwise, first, machine, [], CHECK)["results"]]
    bases = speeds(reference, tried)
    if own.get("mix"):
        bases = sorted({*bases, *(p for p in tried if p in ("ondemand", "conservative"))})
    scans = bases + [f"{base}+max=50%..99%:by1%" for base in bases if "+" not in base]
    states = [p for p in tried if p.startswith(reference + "+cmax=") and "+max" not in p]
    policies = apart(wattwise, workload, machine, scans + states, reference)
    scan = rows_of(compare(wattwise, workload, machine, policies, SCAN, reference))
    if own.get("mix") and states:
        # Limits of C-states with the cheapest limits of the clock as well, also with those that do not keep the limit of time by themselves.
        cheapest = [r.policy for r in sorted(scan, key=lambda r: r.median) if "+cmax" not in r.policy and len(r.over) < 2][:12]
        both = [f"{policy}+cmax={state.split('+cmax=')[1]}" for policy in cheapest for state in states]
        scan += rows_of(compare(wattwise, workload, machine, apart(wattwise, workload, machine, both, reference), SCAN, reference))
    fit = sorted((r for r in scan if r.admissible), key=lambda r: r.median)
    best = [r.policy for r in fit[:FINALISTS]]
    check = rows_of(compare(wattwise, workload, machine, sorted(set(best + [recommended])), CHECK, reference))
    least = min((r for r in check if r.admissible), key=lambda r: r.median)
    mine = next(r for r in check if r.policy == recommended)
    regret = 100 * (mine.median / least.median - 1)
    printed = next(r for r in rows if r.policy == recommended).ratio
    holds = printed["low"] - 0.002 <= mine.median <= printed["high"] + 0.002
    saves = printed["high"] < 0.99
    return [machine, workload, len(scan), answer["tried"], recommended, mine.admissible,
            least.policy, f"{regret:.2f}", holds, f"{100 * (printed['low'] - 1):.1f}", f"{100 * (printed['high'] - 1):.1f}",
            saves, bool(answer["winner"])]


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
