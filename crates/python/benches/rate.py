"""How fast sweeps are, held against the engine's own rate (docs/notes/sweeps.md).

    cargo build --profile dist -p wattwise-advice --example sweep_rate
    python benches/rate.py TARGET/dist/examples/sweep_rate [DRAWS] [TURNS]

The same cases by a plain loop in Rust, by a sweep on this computer's threads, and by a LocalCluster of as many workers, in
turns. On a machine that others use too, CPU time says more than the wall; both are printed.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import wattwise
from wattwise import _wattwise as engine

SHORT = Path(__file__).with_name("short.toml")
MACHINE = "i7-4510u"
POLICIES = "schedutil:rate_limit=1ms..20ms:n100"

SENT = 10_000_000
"""Bytes of one result, to see how fast results come."""


def cpu_s() -> float:
    """This process and all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def nothing(number: int) -> int:
    """A task of Dask that does nothing."""
    return number


def plain(program: str, draws: int) -> float:
    """CPU microseconds a case."""
    done = subprocess.run([program, SHORT, MACHINE, POLICIES, str(draws)], capture_output=True, text=True, check=True)
    cases, taken = re.findall(r"(\d+) cases, ([\d.]+) s", done.stdout)[0]
    return 1e6 * float(taken) / int(cases)


def swept(draws: int, client: object = None, workers: int = 0) -> tuple[float, float, float]:
    """Wall seconds, CPU microseconds a case of everything, and bytes a case on the disk."""
    folder = Path(tempfile.mkdtemp(prefix="wattwise-rate-"))

    def used() -> float:
        return cpu_s() + (sum(client.run(cpu_s).values()) if client else 0.0)  # type: ignore[attr-defined]

    cpu, wall = used(), time.perf_counter()
    done = wattwise.sweep(SHORT, MACHINE, POLICIES, replicas=draws, client=client, out=folder / "s.parquet", progress=False)
    wall, cpu = time.perf_counter() - wall, used() - cpu
    size = sum(file.stat().st_size for file in done.files) / len(done)
    shutil.rmtree(folder)
    return wall, 1e6 * cpu / len(done), size


def main() -> None:
    program, draws, turns = sys.argv[1], int((sys.argv + ["2000"])[2]), int((sys.argv + ["", "3"])[3])
    from distributed import Client, LocalCluster

    workers = len(os.sched_getaffinity(0))
    cases = 100 * draws
    plan = engine.Plan(
        [wattwise.load(SHORT)],
        [wattwise.machine(MACHINE)],
        [POLICIES],
        reference=None,
        goal="energy",
        max_slowdown=0.1,
        replicas=100,
        seed=0,
        budget_text="",
    )
    print(f"{len(plan.run(0, 10_000)) / 10_000:.1f} bytes a case as an Arrow file; {workers} CPUs, load {os.getloadavg()[0]:.1f}")
    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        since = time.perf_counter()
        client.gather(client.map(nothing, range(2000), pure=False))
        print(f"Dask: {(time.perf_counter() - since) / 2:.2f} ms a task that does nothing (2000 of them)")
        since = time.perf_counter()
        for future in [client.submit(os.urandom, SENT, pure=False) for _ in range(20)]:
            future.result()
        print(f"Dask: {20 * SENT / 1e6 / (time.perf_counter() - since):.0f} MB/s from workers to whoever asked")
        folder = Path(tempfile.mkdtemp(prefix="wattwise-rate-"))
        since = time.perf_counter()
        tiny = wattwise.sweep(
            SHORT, MACHINE, "performance", replicas=2000, client=client, block_s=1e-9, out=folder / "s.parquet", progress=False
        )
        taken = (time.perf_counter() - since) / len(tiny.files)
        shutil.rmtree(folder)
        print(f"a block of one case on the cluster, from the plan to its file: {1e3 * taken:.2f} ms")
        for turn in range(turns):
            loop = plain(program, draws)
            here, here_cpu, size = swept(draws)
            there, there_cpu, _ = swept(draws, client, workers)
            print(
                f"turn {turn}: {cases} cases; CPU us a case: loop {loop:.1f}, sweep {here_cpu:.1f}, cluster {there_cpu:.1f}; "
                f"the engine's rate kept: {100 * loop / here_cpu:.0f} %, {100 * loop / there_cpu:.0f} %; "
                f"wall: {here:.1f} s ({cases / here:.0f} cases/s), cluster {there:.1f} s ({100 * (there / here - 1):+.0f} %); "
                f"{size:.1f} bytes a case on the disk; load {os.getloadavg()[0]:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
