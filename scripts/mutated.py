"""Damaged files through whole commands: mutated.py WATTWISE INPUTS [SEED [KIND,KIND...]].

Each input is one of the tests' own files (recordings, captures, journals, machine, workload and policy files, results, logs),
damaged in one to eight places, given to a command that reads such files. Wrong is: a panic, a death by signal, an exit status
that no command has, more than 1 GiB of memory, more than a minute of CPU time, an error of more than one line or with an escape
sequence, and any file that is made, changed or removed beside those the command may write. The same seed makes the same inputs;
what went wrong is kept in a folder, with the command.
"""
import bz2
import collections
import gzip
import io
import json
import lzma
import multiprocessing
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
MEMORY_KIB = 1 << 20
# A search on the bundled machine of 224 CPUs, undamaged, takes 80.
CPU_SECONDS = 180
BUDGET = "simulated=3600,events=300000,disk=100000000"
STATUSES = {0, 1, 2, 3}
NUMBERS = ["0", "-1", "1", "4294967295", "4294967296", "9223372036854775807", "18446744073709551616", "1e308", "1e-308", "nan", "inf", "-inf", "0x7fffffff", "99999999999999999999999", "1.5", "\u0661"]
TEXTS = ["", "../../../../outside/planted", "/etc/passwd", "\x1b]0;title\x07", "\x1b[2J", "\u202e", "a" * 70000, "%s%n", "\0", "\n", "'; reboot"]


def packed(data):
    """A zstd frame whose blocks are not compressed."""
    out = bytearray(b"\x28\xb5\x2f\xfd\x00\x58")
    pieces = [data[n : n + 0x20000] for n in range(0, len(data), 0x20000)] or [b""]
    for n, piece in enumerate(pieces):
        out += (len(piece) << 3 | (n + 1 == len(pieces))).to_bytes(3, "little") + piece
    return bytes(out)


def unpacked(path):
    return subprocess.run(["zstd", "-dqc", path], check=True, stdout=subprocess.PIPE).stdout


def with_instance(data):
    """A trace.dat of version 6 whose events are in an instance: the top buffer's table of CPUs is emptied, and an option names another."""
    at = data.index(b"options  \0")
    cpus = int.from_bytes(data[at - 4 : at], "little")
    table = data.index(b"flyrecord\0", at) + 10
    place = lambda n: (int.from_bytes(data[table + 16 * n : table + 16 * n + 8], "little"), int.from_bytes(data[table + 16 * n + 8 : table + 16 * n + 16], "little"))
    streams = [data[begin : begin + size] for begin, size in map(place, range(cpus))]
    head = data[: table - 12] + (3).to_bytes(2, "little") + (13).to_bytes(4, "little")
    top = (len(head) + 15 + 10 + 16 * cpus).to_bytes(8, "little") + b"inst\0" + b"\0\0" + b"flyrecord\0" + bytes(16 * cpus)
    file = bytearray(head + top + b"flyrecord\0")
    # trace-cmd maps pages of the file.
    begin = -(-(len(file) + 16 * cpus) // 4096) * 4096
    first = begin
    for stream in streams:
        file += begin.to_bytes(8, "little") + len(stream).to_bytes(8, "little")
        begin += len(stream)
    return bytes(file.ljust(first, b"\0") + b"".join(streams))


def with_instance_7(data):
    """A trace.dat of version 7 whose only buffer is an instance's: the last section, at the file's end, is an option list with it."""
    at = data.index(b"none\0") + 5
    at = data.index(b"\0", at) + 1
    at = int.from_bytes(data[at : at + 8], "little")
    while int.from_bytes(data[at + 16 : at + 18], "little") != 3:
        end = at + 16 + int.from_bytes(data[at + 8 : at + 16], "little")
        # An option list ends with where the next one is.
        at = int.from_bytes(data[end - 8 : end], "little")
    size = int.from_bytes(data[at + 8 : at + 16], "little")
    option = int.from_bytes(data[at + 18 : at + 22], "little")
    content = data[at + 22 : at + 22 + option]
    named = content[:8] + b"inst" + content[8:]
    head = data[: at + 8] + (size + 4).to_bytes(8, "little") + data[at + 16 : at + 18] + (option + 4).to_bytes(4, "little")
    return head + named + data[at + 22 + option :]


def dressed(text):
    """ftrace text in the dresses of other kernels and tools."""
    lines = text.decode("utf-8", "replace").splitlines(keepends=True)
    is_event = re.compile(r"^(.{16})-(\d+) +\[(\d+)\] (\S{5}) +(\d+\.\d+): (.*)$", re.S)
    events = [found for found in map(is_event.match, lines) if found]
    rt = "".join(f"{e[1]}-{e[2]:7} [{e[3]}] {e[4][:2]}.{e[4][2:]}. {e[5]}: {e[6]}" for e in events)
    latency = "".join(f"{e[1].strip()[:8]:>8}-{e[2]:7} {int(e[3]):3}{e[4]} {round((float(e[5]) - float(events[0][5])) * 1e6):4}us+: {e[6]}" for e in events)
    script = "".join(f"{e[1]} {e[2]:>7} [{e[3]}] {e[5]}:  1 sched:{e[6].replace(':', ':k:', 1)}\tffffffff8180a1c8 __schedule+0x3c8 ([kernel.kallsyms])\n\n" for e in events)
    joined = "".join("# tracer: nop\n# entries-in-buffer/entries-written: 9/10   #P:2\n" + "".join(e[0] for e in events if int(e[3]) == cpu) for cpu in (1, 0))
    half = len(events) // 2
    steps = [f"          <idle>-0       [000] d..1. {float(events[half - 1][5]) + later:.6f}: suspend_resume: machine_suspend[3] {step}\n" for later, step in ((0, "begin"), (3600, "end"))]
    moved = [f"{e[1]}-{e[2]:7} [{e[3]}] {e[4]} {float(e[5]) + 3600:.6f}: {e[6]}" for e in events[half:]]
    slept = "".join([e[0] for e in events[:half]] + steps + moved)
    return [dress.encode() for dress in (rt, latency, script, joined, slept)]


def shown(folder):
    """Recordings as perf and trace-cmd print them, where these are installed."""
    texts = []
    for name, command in [
        ("mix.perf", ["perf", "script", "-f", "--ns", "--header", "--show-task-events"]),
        ("pipe.perf", ["perf", "script", "-f"]),
        ("tc6.dat", ["trace-cmd", "report", "-t", "-l"]),
        ("tc7-none.dat", ["trace-cmd", "report", "-R"]),
    ]:
        file = folder / name
        file.write_bytes(unpacked(REPOSITORY / f"crates/trace/tests/traces/{name}.zst"))
        if shutil.which(command[0]):
            texts.append(subprocess.run([*command, "-i", file], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
        else:
            print(f"mutated: skipped: what {command[0]} prints: it is not installed", flush=True)
    return texts


class Kind:
    """Files of one kind, and the commands that read them; FILE stands for the damaged one."""

    def __init__(self, name, seeds, suffix, commands, text=False, pack=False):
        self.name, self.seeds, self.suffix, self.commands, self.text, self.pack = name, seeds, suffix, commands, text, pack


def kinds(wattwise, folder):
    read = lambda pattern: [path.read_bytes() for path in sorted(REPOSITORY.glob(pattern))]
    traces = lambda pattern: [unpacked(path) for path in sorted(REPOSITORY.glob(f"crates/trace/tests/traces/{pattern}"))]
    budget = ["--budget", BUDGET]
    model = ["-m", "recording-vm", "-p", "performance", "--exact", "--recorded-khz", "3000000", *budget]
    recorded = [
        ["trace", "FILE", *budget],
        ["trace", "FILE", "--json", *budget],
        ["import", "FILE", *budget],
        ["compare", "FILE", *model],
        ["compare", "FILE", "--only-foreground", "--json", *model],
    ]
    machine = [
        ["machines", "show", "FILE"],
        ["machines", "check", "FILE", "--replicas", "8", "-w", "burst"],
        ["compare", "burst", "-m", "FILE", "--replicas", "8", *budget],
        ["machines", "compare", "FILE", "xeon-4210"],
    ]
    seen = [
        ["info", "--root", "FILE"],
        ["info", "--root", "FILE", "--json"],
        ["set", "--root", "FILE", "--dry-run", "--max", "50%", "--governor", "powersave"],
        ["set", "--root", "FILE", "--dry-run", "--cores", "0", "--freq", "min", "--epp", "power", "--cstate", "C1"],
        ["compare", "burst", "-m", "FILE", "--replicas", "8", *budget],
        ["cpufreq-info", "--root", "FILE"],
    ]
    captures = []
    for name in ["core-i5-2gen", "bc10", "vm-2cpu"]:
        file = folder / f"{name}.wattwise"
        subprocess.run([wattwise, "capture", "--root", f"emulated:{name}", "-o", file], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        captures.append(unpacked(file))
    result = [["report", "FILE"], ["report", "FILE", "--report", "out.html"]]
    log = folder / "tuned.jsonl"
    tuned = subprocess.run(
        [wattwise, "tune", "burst", "periodic", "-m", "thinkpad-r51", "--space", "burst", "--budget", f"trials=6,{BUDGET}", "--replicas", "40", "-o", folder / "tuned.toml", "--log", log, "--json"],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )
    policy = json.loads(tuned.stdout)["winner"]["file"].encode()
    searched = log.read_bytes().splitlines(keepends=True)
    # Whole, and as it was left by an end on the way: after a line, and within one.
    searches = [b"".join(searched[:lines]) for lines in (len(searched), len(searched) - 1, len(searched) // 2, 4)]
    searches.append(searches[1][:-40])
    return [
        Kind("perf.data", traces("*.perf.zst"), ".perf", recorded),
        Kind("perf.data.zst", traces("mix.perf.zst"), ".perf.zst", recorded, pack=True),
        Kind("trace.dat", traces("*.dat.zst"), ".dat", recorded),
        Kind("ftrace", [text[:60000] for text in traces("*.txt.zst")], ".txt", recorded, text=True),
        Kind("dresses", [dress[:60000] for text in traces("*.txt.zst") for dress in dressed(text)], ".txt", recorded, text=True),
        Kind("instance", [with_instance(traces("tc6.dat.zst")[0]), *(with_instance_7(data) for data in traces("tc7-none.dat.zst"))], ".dat", recorded),
        Kind("perfetto", traces("*.pftrace.zst"), ".pftrace", recorded),
        *([Kind("shown", [text[:60000] for text in printed], ".txt", recorded, text=True)] if (printed := shown(folder)) else []),
        Kind("unpacked", [pack(text[:60000]) for text in traces("*.txt.zst") for pack in (gzip.compress, lzma.compress, bz2.compress, lambda t: b"TRACE:\n" + zlib.compress(t), lambda t: t.decode("utf-8", "replace").encode("utf-16"))], ".txt", recorded),
        Kind("capture", captures, ".wattwise", seen, pack=True),
        Kind("machine", read("machines/*.toml"), ".toml", machine, text=True),
        Kind("workload", read("workloads/*.toml"), ".toml", [["compare", "FILE", *model], ["compare", "FILE", "--replicas", "8", *model[:2], *budget]], text=True),
        Kind("policy", [policy], ".toml", [["compare", "burst", "-p", "FILE", "-m", "thinkpad-r51", "--exact", *budget]], text=True),
        Kind("journal", read("crates/control/tests/journal/*.jsonl"), ".jsonl", [["restore", "--root", "TREE", "--journal", "JOURNAL"], ["restore", "--dry-run", "--root", "TREE", "--journal", "JOURNAL"]], text=True),
        Kind("result", read("crates/cli/tests/results/*.json"), ".json", result, text=True),
        Kind("ab", read("crates/live/tests/ab/*.jsonl"), ".jsonl", result, text=True),
        Kind("search", searches, ".jsonl", [["tune", "--resume", "FILE", "--budget", f"trials=1,{BUDGET}", "-o", "out.toml"]], text=True),
    ]


def damage(data, text, chance, others):
    """One to eight changes; where it is text, half of them to whole numbers and words."""
    data = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 2, 3, 8])):
        if not data:
            break
        at = chance.randrange(len(data))
        match chance.choice([8, 9]) if text and chance.random() < 0.5 else chance.randrange(8):
            case 0:
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                data[at] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, 10, 32, 34])
            case 2:
                size = chance.choice([2, 4, 8])
                at -= at % size
                data[at : at + size] = chance.choice([0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1]).to_bytes(8, "little")[:size]
            case 3:
                del data[at : at + 1 + int(chance.paretovariate(0.5))]
            case 4:
                size = min(1 + int(chance.paretovariate(0.5)), 4096)
                data[at:at] = data[at : at + size] * chance.choice([1, 2, 16])
            case 5:
                if chance.random() < 0.2:
                    del data[at:]
            case 6:
                other = chance.choice(others)
                begin = chance.randrange(len(other))
                data[at:at] = other[begin : begin + min(int(chance.paretovariate(0.5)), 2048)]
            case 7:
                data[at:at] = bytes(chance.getrandbits(8) for _ in range(chance.randrange(1, 9)))
            case 8:
                numbers = list(re.finditer(rb"\d[\d._]*", data))
                if numbers:
                    found = chance.choice(numbers)
                    data[found.start() : found.end()] = chance.choice(NUMBERS).encode()
            case 9:
                words = list(re.finditer(rb'"[^"\n]*"', data)) or list(re.finditer(rb"[a-z_]+", data))
                found = chance.choice(words) if words else None
                if found:
                    quote = b'"' if data[found.start()] == 34 else b""
                    data[found.start() : found.end()] = quote + chance.choice(TEXTS).encode() + quote
    return bytes(data[: 1 << 20])


def listing(folder):
    return {str(p.relative_to(folder)): (p.lstat().st_mode, p.lstat().st_size, p.lstat().st_mtime_ns) for p in folder.rglob("*")}


class Worker:
    def __init__(self, wattwise, seed, kept, names):
        self.wattwise, self.seed, self.kept = wattwise, seed, kept
        base = pathlib.Path(tempfile.mkdtemp(prefix="wattwise-mutated-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
        self.base, self.outside, self.here = base, base / "outside", base / "a" / "b" / "c"
        self.outside.mkdir()
        (self.outside / "file").write_text("as it was\n")
        self.here.mkdir(parents=True)
        self.tree = base / "a" / "b" / "tree"
        made = base / "made"
        made.mkdir()
        self.kinds = kinds(wattwise, made)
        shutil.rmtree(made)
        machine = next(kind for kind in self.kinds if kind.name == "capture").seeds[0]
        self.kinds = [kind for kind in self.kinds if not names or kind.name in names]
        with tarfile.open(fileobj=io.BytesIO(machine)) as tar:
            tar.extractall(self.tree, filter="data")
        self.apart = listing(self.outside)
        self.names = {p for p in listing(self.tree)}
        self.errors = base / "said"

    def run(self, n):
        chance = random.Random(f"{self.seed} {n}")
        kind = chance.choice(self.kinds)
        data = damage(chance.choice(kind.seeds), kind.text, chance, kind.seeds)
        if kind.pack:
            data = packed(data)
            if chance.random() < 0.1:
                data = damage(data, False, chance, [data])
        file = self.here / f"input{kind.suffix}"
        journal = self.here / "journal"
        if kind.name == "journal":
            journal.mkdir(mode=0o700, exist_ok=True)
            file = journal / "000001.jsonl"
        file.write_bytes(data)
        file.chmod(0o600)
        words = {"FILE": str(file), "TREE": str(self.tree), "JOURNAL": str(journal)}
        command = [words.get(word, word) for word in chance.choice(kind.commands)]
        # What is printed is not kept, but for the start of what is said of an error.
        with open(self.errors, "wb") as errors:
            began = time.monotonic()
            process = subprocess.Popen([self.wattwise, *command], cwd=self.here, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
            signal.alarm(4 * CPU_SECONDS)
            try:
                _, status, used = os.wait4(process.pid, 0)
            except TimeoutError:
                process.kill()
                _, status, used = os.wait4(process.pid, 0)
            finally:
                signal.alarm(0)
            process.returncode = os.waitstatus_to_exitcode(status)
        said = self.errors.read_bytes()[:100_000]
        wrong = self.judge(kind, process.returncode, used, said)
        if wrong:
            folder = self.kept / f"{self.seed}-{n}"
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, folder)
            (folder / "why").write_bytes(f"{wrong}\nwattwise {' '.join(command)}\n".encode() + said)
        for path in self.here.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return kind.name, process.returncode, used.ru_maxrss, used.ru_utime + used.ru_stime, time.monotonic() - began, wrong

    def judge(self, kind, status, used, said):
        if status not in STATUSES or b"panicked" in said:
            return f"status {status}"
        if used.ru_maxrss > MEMORY_KIB:
            return f"{used.ru_maxrss >> 10} MiB of memory"
        if status == 2 and len(said.strip().splitlines()) != 1 and b"usage" not in said.lower():
            return f"an error of {len(said.strip().splitlines())} lines"
        if any(byte < 32 and byte not in b"\n\r\t" for byte in said):
            return "a control character in what is said"
        if listing(self.outside) != self.apart:
            return "a file outside was written"
        if kind.name == "journal" and set(listing(self.tree)) != self.names:
            return "a file of the tree was made or removed"
        allowed = {"input", "journal", "out.", "wattwise-"}
        strange = [p.name for p in self.here.iterdir() if not any(p.name.startswith(a) for a in allowed)]
        beside = [p.name for p in self.here.parent.iterdir() if p not in (self.here, self.tree) and not p.name.startswith("tree")]
        return f"made {strange + beside}" if strange or beside else None


def work(arguments):
    wattwise, seed, kept, names, begin, step, count, out = arguments

    def late(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)
    worker = Worker(wattwise, seed, kept, names)
    try:
        for n in range(begin, count, step):
            out.put(worker.run(n))
    finally:
        shutil.rmtree(worker.base)
        out.put(None)


def main():
    wattwise, count, seed = str(pathlib.Path(sys.argv[1]).resolve()), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1
    names = sys.argv[4].split(",") if len(sys.argv) > 4 else []
    kept = pathlib.Path(os.environ.get("WATTWISE_KEPT", "wattwise-mutated")).resolve()
    workers = os.cpu_count() or 1
    out = multiprocessing.Queue()
    crew = [multiprocessing.Process(target=work, args=((wattwise, seed, kept, names, n, workers, count, out),)) for n in range(workers)]
    began = time.monotonic()
    for one in crew:
        one.start()
    found, ended, bad = collections.defaultdict(collections.Counter), 0, 0
    memory, cpu = (0, ""), (0.0, "")
    while ended < workers:
        got = out.get()
        if got is None:
            ended += 1
            continue
        name, status, rss, seconds, _, wrong = got
        found[name][status] += 1
        memory, cpu = max(memory, (rss, name)), max(cpu, (seconds, name))
        if wrong:
            bad += 1
            print(f"mutated: {name}: {wrong}", flush=True)
    done = sum(sum(each.values()) for each in found.values())
    for name, each in sorted(found.items()):
        print(f"mutated: {name:14} {sum(each.values()):8}: " + ", ".join(f"status {s}: {n}" for s, n in sorted(each.items())))
    print(f"mutated: {done} inputs in {time.monotonic() - began:.0f} s, {bad} wrong; at most {memory[0] >> 10} MiB ({memory[1]}) and {cpu[0]:.1f} s of CPU time ({cpu[1]})")
    if bad:
        print(f"mutated: what was wrong is in {kept}")
    sys.exit(bad > 0 or done != count)


if __name__ == "__main__":
    main()
