"""The table of `make peers`, from the lines that the programs printed; fails where their results differ.

Speeds are medians over the rounds. Bursts and joules are of the same simulated time in all programs.
"""

import datetime
import json
import os
import re
import statistics
import sys

# How far bursts and joules of one job may be apart.
BURSTS_WITHIN = 0.001
JOULES_WITHIN = 0.005

SHAPES = {(4, 8): "small", (4, 64): "crowded", (224, 448): "wide"}


def values(text):
    """Every JSON value of a text that holds one after the other."""
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = decoder.raw_decode(text, at)
        yield value


def run(value, commit):
    """One run of any program as (shape, program, figures)."""
    if "jobs" in value:
        job = value["jobs"][0]
        program = f"wattwise {value['version']}" + (f" ({commit})" if commit else "")
        figures = {
            "seconds": job["simulated_s"],
            "events_per_s": job["events_per_s"],
            "bursts": job["bursts"],
            "joules": job["energy_j"],
            "rules": True,
        }
        return job["job"], program, figures
    shape = value["shape"]
    name = {"simgrid": "SimGrid", "simpy": "SimPy"}[value["peer"]]
    shared = value.get("queue") == "shared"
    program = f"{name} {value['version']}" + (", cores shared" if shared else "")
    figures = {
        "seconds": shape["seconds"],
        "events_per_s": value["events_per_s"],
        "bursts": value["bursts"],
        "joules": value["joules"],
        "rules": not shared,
    }
    return SHAPES[shape["cpus"], shape["tasks"]], program, figures


def table(runs):
    """Prints the rows of all shapes; returns the differences that are too large."""
    wrong = []
    columns = "{:8} {:28} {:>11} {:>9} {:>9} {:>7} {:>10} {:>13} {:>9}"
    print(columns.format("shape", "program", "events/s", "ns/event", "wattwise", "s", "bursts", "J", ""))
    print(columns.format("", "", "", "", "x as fast", "", "", "", ""))
    for shape in SHAPES.values():
        programs = {}
        for of, program, figures in runs:
            if of == shape:
                programs.setdefault(program, []).append(figures)
        ours = next(p for p in programs if p.startswith("wattwise"))
        # The long runs of wattwise are for speed, the one as long as the peers' is for what came out.
        seconds = min(f["seconds"] for f in programs[ours])
        same = next(f for f in programs[ours] if f["seconds"] == seconds)
        fast = statistics.median(f["events_per_s"] for f in programs[ours] if f["seconds"] > seconds)
        for program, all_runs in programs.items():
            last = all_runs[-1] if program != ours else same
            rate = fast if program == ours else statistics.median(f["events_per_s"] for f in all_runs)
            bursts = last["bursts"] / same["bursts"] - 1
            joules = last["joules"] / same["joules"] - 1
            if last["seconds"] != seconds:
                wrong.append(f"{shape}: {program} ran for {last['seconds']} s, wattwise for {seconds} s")
            elif last["rules"] and (abs(bursts) > BURSTS_WITHIN or abs(joules) > JOULES_WITHIN):
                wrong.append(f"{shape}: {program} has {bursts:+.3%} bursts and {joules:+.3%} joules")
            print(
                columns.format(
                    shape,
                    program,
                    f"{rate:,.0f}",
                    f"{1e9 / rate:,.1f}",
                    f"{fast / rate:.1f}",
                    f"{seconds:g}",
                    str(last["bursts"]),
                    f"{last['joules']:.3f}",
                    "" if program == ours else f"{joules:+.4%}",
                )
            )
    return wrong


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = re.search(r"^model name\s*:\s*(.*)$", file.read(), re.MULTILINE)
    return f"{os.cpu_count()} CPUs, {model[1] if model else os.uname().machine}"


def main():
    path, commit = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        runs = [run(value, commit) for value in values(file.read())]
    print(f"{datetime.date.today()}, {machine()}")
    wrong = table(runs)
    if wrong:
        sys.exit("peers: results differ: " + "; ".join(wrong))
    print(f"peers: all that keep the rules agree: bursts within {BURSTS_WITHIN:.1%}, joules within {JOULES_WITHIN:.1%}")


if __name__ == "__main__":
    main()
