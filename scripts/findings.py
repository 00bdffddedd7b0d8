"""The tables of docs/notes/findings.md, made anew: findings.py WATTWISE [SPACE|MACHINE...], findings.py WATTWISE common [MACHINE...].

Every space is searched on every machine with the bundled recordings: those that were used in development and every second of the
others are the search's, the rest is the test's. All figures are modelled.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs/notes/findings.md"
MACHINES = ["alderlake-p-laptop", "core-i5-2gen", "thinkpad-r51"]
SPACES = ["burst", "schedutil", "ondemand", "consolidate", "caps"]
# A policy's settings are held against the policy as it comes, so that a gain is a reason for other defaults; what is no policy of its
# own is held against what the machine does unless told otherwise.
OWN = {"burst", "schedutil", "ondemand"}
TRIALS, SEED = 48, 1
# One setting for everything: chosen over the search's recordings, each with the same share of the hours, and tried on the others.
COMMON = ["alderlake-p-laptop", "i7-4510u", "core-i5-2gen", "t8103", "xeon-4210"]


def recordings(wattwise):
    """Those of the search and those of the test."""
    listed = json.loads(subprocess.run([wattwise, "workloads", "--json"], check=True, stdout=subprocess.PIPE).stdout)
    recorded = [entry for entry in listed["entries"] if entry["kind"].startswith("recorded")]
    used = [entry["name"] for entry in recorded if "development" in entry["kind"]]
    others = [entry["name"] for entry in recorded if "development" not in entry["kind"]]
    return used + others[::2], others[1::2]


def percent(gain):
    return f"{(gain['ratio'] - 1) * 100:+.1f} % ({(gain['low'] - 1) * 100:+.1f} to {(gain['high'] - 1) * 100:+.1f})"


def searched(wattwise, machine, space, split, folder):
    tests = [word for name in split[1] for word in ("--test", name)]
    command = [wattwise, "tune", *split[0], *tests, "-m", machine, "--space", space, "--budget", f"trials={TRIALS}", "--seed", str(SEED), "--json"]
    command += ["--reference", space] if space in OWN else []
    file = folder / f"{machine}-{space}"
    done = subprocess.run([*command, "-o", f"{file}.toml"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-1]
    return json.loads(done.stdout), ""


def compared(wattwise, *words):
    done = subprocess.run([wattwise, "compare", *words, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout)


def change(ratio):
    return f"{(ratio['low'] - 1) * 100:+.1f} to {(ratio['high'] - 1) * 100:+.1f} %"


def common(wattwise, machine, split):
    """The best setting over the search's recordings, what it does on each of the others, and what would be best there."""
    answer = compared(wattwise, *split[0], "-m", machine)
    mix, reference = answer["mix"]["answer"], answer["comparisons"][0]["reference"]
    chosen = mix["recommended"]
    text = [f"### {machine}", "", f"One setting for all of the search's recordings, best of {mix['tried']} tried: `{chosen}`. {mix['text']}", ""]
    text += ["| not used in the search | with it | time | within the limit | best by itself | energy |", "|---|---:|---:|---:|---|---:|"]
    for name in split[1]:
        cells = ["", "", ""]
        if chosen != reference:
            c = compared(wattwise, name, "-m", machine, "-p", chosen, "--reference", reference)
            own = next(r for r in c["results"] if r["policy"] == chosen)
            energy = "own time" if own["over_own_time"] else change(own["uncertain"]["energy_ratio"])
            cells = [energy, change(own["uncertain"]["time_ratio"]), f"{own['within_share']:.0%}"]
        alone = compared(wattwise, name, "-m", machine)
        best = next(r for r in alone["results"] if r["policy"] == alone["answer"]["recommended"])
        kept = best["policy"] == alone["reference"]
        cells += [f"`{best['policy']}`", "" if kept else change(best["uncertain"]["energy_ratio"])]
        text.append(f"| {name} | {' | '.join(cells)} |")
    return text + [""]


def row(space, found, why):
    if found is None:
        return f"| {space} | | {why} | | | | |"
    test, train = found["winner"]["test"], found["winner"]["train"]
    cells = [f"`{found['winner']['policy']}`", f"{(train['ratio'] - 1) * 100:+.1f} %" if train else ""]
    cells += [percent(test["against_reference"]), f"{(test['time_ratio'] - 1) * 100:+.1f} %"] if test else ["", ""]
    reference = ", ".join(sorted({f"`{case['reference']}`" for case in found["cases"]}))
    return f"| {space} | {reference} | " + " | ".join(cells) + f" | {'yes' if found['verdict']['worth_it'] else 'no'} |"


def front(found):
    lines = ["| policy | energy | time | p99 of waits |", "|---|---:|---:|---:|"]
    points = found["front"]
    step = max(1, -(-len(points) // 6))
    for p in points[::step]:
        lines.append(f"| `{p['policy']}` | {(p['cost_ratio'] - 1) * 100:+.1f} % | {(p['time_ratio'] - 1) * 100:+.1f} % | {(p['p99_ratio'] - 1) * 100:+.1f} % |")
    return "\n".join(lines)


def main():
    wattwise, only = sys.argv[1], sys.argv[2:]
    machines = [m for m in MACHINES if m in only] or MACHINES
    spaces = [s for s in SPACES if s in only] or SPACES
    split = recordings(wattwise)
    text = [f"Searched on {', '.join(split[0])}. Tested on {', '.join(split[1])}. {TRIALS} trials, seed {SEED}.", ""]
    with tempfile.TemporaryDirectory() as folder:
        for machine in machines:
            table, fronts = [], []
            for space in spaces:
                found, why = searched(wattwise, machine, space, split, pathlib.Path(folder))
                print(f"{machine} {space}: {why or found['verdict']['text']}", file=sys.stderr, flush=True)
                table.append(row(space, found, why))
                if found:
                    fronts += [f"Front of `{space}` ({len(found['front'])} policies, at most six shown), on the search's recordings:", "", front(found), ""]
            text += [f"### {machine}", ""]
            text += ["| space | reference | found | search | test | time, test | worth it |", "|---|---|---|---:|---:|---:|---|", *table, "", *fronts]
    write("settings", text)


def write(part, text):
    """One of the page's two made parts anew."""
    begin, end = f"<!-- {part}: made by scripts/findings.py -->", f"<!-- {part}: end -->"
    head, rest = PAGE.read_text().split(begin)
    PAGE.write_text(head + begin + "\n" + "\n".join(text) + "\n" + end + rest.split(end)[1])


def write_common(wattwise, machines):
    split, text = recordings(wattwise), []
    for machine in machines:
        text += common(wattwise, machine, split)
        print(text[-1] or machine, file=sys.stderr, flush=True)
    write("common", text)


if __name__ == "__main__":
    if sys.argv[2:3] == ["common"]:
        write_common(sys.argv[1], sys.argv[3:] or COMMON)
    else:
        main()
