#!/usr/bin/env python3
"""hwloc's and util-linux's captured machines through `wattwise info`, held against their own expected output.

    scripts/machine-trees.sh        fetches the trees from Debian's source packages and calls this
    machine-trees.py WATTWISE HWLOC UTIL_LINUX REASONS

Compared: CPUs that run, packages, cores, memory nodes, kinds of core. What the peer's output does not say of a tree is not
compared. Each difference needs a line in REASONS, `PEER/TREE FIELD: why`, and each such line a difference.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree

FIELDS = ("cpus", "packages", "cores", "nodes", "kinds")


def ours(wattwise, folder):
    run = subprocess.run([wattwise, "info", "--root", folder, "--json"], capture_output=True, text=True)
    if run.returncode != 0:
        return {"failed": f"exit code {run.returncode}: {run.stderr.strip()}"}
    topology = json.loads(run.stdout)["topology"]
    cpus = [cpu for cpu in topology["cpus"] if cpu["online"]]

    def count(field):
        return len({cpu[field] for cpu in cpus if cpu[field] is not None})

    # A machine without memory nodes has its memory in one place.
    return {
        "cpus": len(cpus),
        "packages": count("package"),
        "cores": count("core"),
        "nodes": max(1, len(topology["nodes"])),
        "kinds": count("kind"),
    }


def lscpu(text):
    """The first of the two tables that `lscpu -p` prints: CPU,Core,Socket,Node with numbers of lscpu's own."""
    rows, table = [], 0
    for line in text.splitlines():
        if line.startswith("# CPU,"):
            table += 1
        elif table == 1 and re.match(r"\d", line):
            rows.append(line.split(","))

    def count(column):
        return len({row[column] for row in rows if row[column] != ""})

    found = {"cpus": len(rows), "packages": count(2), "cores": count(1)}
    nodes = re.search(r"^NUMA node\(s\): *(\d+)", text, re.M)
    if nodes:
        found["nodes"] = int(nodes[1])
    return {field: value for field, value in found.items() if value}


NAMES = {"Package": "packages", "Core": "cores", "PU": "cpus", "NUMANode": "nodes"}


def lstopo(text, options):
    """What `lstopo` wrote: XML, objects with a summary after them, or objects alone."""
    kinds = 0
    if text.startswith("<?xml"):
        tree = xml.etree.ElementTree.fromstring(text)
        counts = collections.Counter(node.get("type") for node in tree.iter("object"))
        kinds = len(list(tree.iter("cpukind")))
    elif "depth 0:" in text:
        counts = collections.Counter()
        for count, kind in re.findall(r"depth -?\d+:\s+(\d+) (\w+) \(type", text):
            counts[kind] += int(count)
        kinds = len(re.findall(r"^CPU kind #\d+", text, re.M))
    else:
        counts = collections.Counter(re.findall(r"^ *(\w+) P#\d+", text, re.M))
    found = {field: counts[kind] for kind, field in NAMES.items() if counts[kind]}
    # Objects that were left out because they were asked to be, or because they say no more than others.
    if "--ignore" in options or "--merge" in options or "structure" in options:
        found = {field: found[field] for field in ("cpus", "nodes") if field in found}
    if kinds:
        found["kinds"] = kinds
    return found


def hwloc_trees(source):
    folder = source / "tests/hwloc/linux"
    for tree in sorted(folder.glob("*.tar.bz2")):
        name = tree.name.removesuffix(".tar.bz2")
        for output in (folder / f"{name}.output", folder / f"{name}.xml.output"):
            options = output.with_suffix(".options")
            if output.exists():
                said = options.read_text() if options.exists() else ""
                yield name, tree, lstopo(output.read_text(errors="replace"), said)
                break
        else:
            yield name, tree, None


def lscpu_trees(source):
    for tree in sorted((source / "tests/ts/lscpu/dumps").glob("*.tar.gz")):
        name = tree.name.removesuffix(".tar.gz")
        expected = source / "tests/expected/lscpu" / f"lscpu-{name}"
        yield name, tree, lscpu(expected.read_text()) if expected.exists() else None


def unpacked(tree, folder):
    with tarfile.open(tree) as archive:
        if hasattr(tarfile, "data_filter"):
            # Captured trees have links to absolute places and odd modes: files and folders are taken, links as they are.
            archive.extractall(folder, filter="fully_trusted")
        else:
            archive.extractall(folder)
    tops = [path for path in pathlib.Path(folder).iterdir() if path.is_dir()]
    return next((top for top in tops if (top / "sys").exists() or (top / "proc").exists()), pathlib.Path(folder))


def reasons(path):
    known = {}
    for line in path.read_text().splitlines():
        match = re.match(r"(\S+) (\w+): (.+)", line)
        if match:
            known[match[1], match[2]] = match[3]
    return known


def main():
    wattwise, hwloc, util_linux, notes = sys.argv[1], *map(pathlib.Path, sys.argv[2:5])
    known, bad = reasons(notes), []
    used = set()
    for peer, trees in (("hwloc", hwloc_trees(hwloc)), ("lscpu", lscpu_trees(util_linux))):
        total = equal = 0
        for name, tree, expected in trees:
            if expected is None:
                print(f"{peer}/{name}: no expected output to hold it against")
                continue
            total += 1
            with tempfile.TemporaryDirectory() as folder:
                got = ours(wattwise, unpacked(tree, folder))
            different = [f for f in FIELDS if f in expected and got.get(f) != expected[f]]
            equal += not different
            for field in different:
                why = known.get((f"{peer}/{name}", field))
                used.add((f"{peer}/{name}", field))
                told = got.get("failed") or f"{got.get(field)}, {peer} says {expected[field]}"
                print(f"{peer}/{name}: {field} {told}{f' ({why})' if why else ''}")
                if not why:
                    bad.append((name, field))
        print(f"{peer}: {equal} of {total} trees equal in all that is compared")
        if not total:
            sys.exit(f"{peer}: no trees found")
    for key in known.keys() - used:
        print(f"{notes}: {key[0]} {key[1]}: there is no such difference any more")
        bad.append(key)
    sys.exit(1 if bad else 0)


main()
