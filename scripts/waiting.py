#!/usr/bin/env python3
"""Holds `compare`'s verdicts on responses against each thread's waiting, apart from its rule and from its episodes.

    scripts/waiting.py WATTWISE [MACHINE ...] [-- WORKLOAD ...]

For each interactive workload on each machine every policy is judged by `compare` with 16 replicas. Apart from that, the work
runs once under it and is written as a kernel would have recorded it (`--ftrace`); from the text is summed how long each
foreground thread took from each wake-up to its next block. Printed, tab-separated: the verdict, the ratio of all waiting to the
reference policy's, and that of the thread of at least 5 % of all waiting that became slowest. A line ends with `false?` where a policy is
judged slower and no such thread waits 1.05 times as long, and with `missed?` where one waits 1.4 times as long and the
policy is not judged slower. Threads that wait briefly and often weigh in these sums, and not in the rule, so such a line is a
question.
"""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

POLICIES = ["performance", "performance+max=60%", "schedutil", "schedutil+max=60%", "ondemand", "conservative", "hwp:epp=power"]
MACHINES = ["alderlake-p-laptop", "i7-4510u"]
WORKLOADS = ["browse-app", "browse-canvas", "idle-desktop", "video-play", "node-http", "postgres"]
REPLICAS, PART, FALSE, MISSED = 16, 0.05, 1.05, 1.4

EVENT = re.compile(r"\s*\S.*-\d+\s+\[\d+\] \S+\s+([\d.]+): (sched_\w+): (.*)")
SWITCH = re.compile(r"prev_comm=(.*?) prev_pid=(\d+) .*?prev_state=(\S+)")
WOKEN = re.compile(r" pid=(\d+)")


def run(*words):
    return subprocess.run(words, capture_output=True, text=True)


def waiting(wattwise, workload, machine, policy):
    """Seconds from wake-up to block of each foreground thread, by (thread, name); None where there is no such text."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "text")
        run(wattwise, "compare", workload, "-m", machine, "-p", policy, "--exact", "-q", "--ftrace", path)
        if not os.path.exists(path):
            return None
        foreground, woken, sums = set(), {}, collections.Counter()
        with open(path) as text:
            for line in text:
                if line.startswith("# wattwise: foreground="):
                    foreground.update(line.split("=")[1].strip().split(","))
                elif event := EVENT.match(line):
                    seconds, name, fields = float(event[1]), event[2], event[3]
                    if name in ("sched_waking", "sched_wakeup_new"):
                        woken.setdefault(WOKEN.search(" " + fields)[1], seconds)
                    elif name == "sched_switch":
                        comm, thread, state = SWITCH.search(fields).groups()
                        if not state.startswith("R") and thread in woken and thread in foreground:
                            sums[thread, re.split("[/:]", comm)[0]] += seconds - woken.pop(thread)
        return sums


def by_name(own, reference):
    """Each name's waiting under both policies, of the threads that the reference policy has."""
    names = collections.defaultdict(lambda: [0.0, 0.0])
    for key, seconds in reference.items():
        names[key[1]][0] += seconds
        names[key[1]][1] += own.get(key, 0.0)
    return names


def case(wattwise, workload, machine):
    asked = sum((["-p", policy] for policy in POLICIES), [])
    done = run(wattwise, "compare", workload, "-m", machine, *asked, "--replicas", str(REPLICAS), "--json")
    if done.returncode:
        print(workload, machine, done.stderr.strip(), sep="\t", flush=True)
        return
    comparison = json.loads(done.stdout)
    reference = waiting(wattwise, workload, machine, comparison["reference"])
    for row in comparison["results"]:
        own = waiting(wattwise, workload, machine, row["policy"])
        if row["policy"] == comparison["reference"] or not row.get("responses") or not own or not reference:
            continue
        total, own_total = sum(reference.values()), sum(own.values())
        large = {
            name: to / of
            for name, (of, to) in by_name(own, reference).items()
            if of and max(of / total, to / own_total) >= PART
        }
        name, worst = max(large.items(), key=lambda item: item[1])
        slower = row["responses"]["slower"]
        question = "false?" if slower and worst < FALSE else "missed?" if not slower and worst > MISSED else ""
        verdict = "slower" if slower else "not slower"
        print(workload, machine, row["policy"], verdict, f"{own_total / total:.2f}", name, f"{worst:.2f}", question, sep="\t", flush=True)


def main():
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    wattwise, machines, workloads = words[0], words[1:at] or MACHINES, words[at + 1 :] or WORKLOADS
    print("workload", "machine", "policy", "judged", "all waiting", "slowest thread", "its waiting", "", sep="\t")
    for machine in machines:
        for workload in workloads:
            case(wattwise, workload, machine)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        sys.exit(0 if len(sys.argv) > 1 else 2)
    main()
