"""Sweeps: all workloads on all machines under all policies in all draws, here or on a Dask cluster."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Callable

from . import _arguments as arguments
from . import _wattwise as engine
from ._arguments import Share, refused, several
from ._compare import policy_text, several_policies
from ._inputs import AnyMachine, AnyPath, AnyWorkload, Entry, load, machine
from ._listing import Listing, line, markup
from ._optional import optional
from ._order import Order, made
from ._progress import Progress
from ._store import Store

MOST_BLOCKS = 10_000
"""A scheduler of Dask takes 10^5 tasks with pain: a sweep has a tenth of that."""

_PROBED = 32
"""Pairs of workload and machine whose cases are timed; the others count as their mean."""


_MOST_THREADS = 4096

_LONG = 20
"""A draw that takes so many times a block's length is cut."""


class Sweep:
    """A sweep's results: a folder with one file a block. Whatever takes Arrow tables takes this."""

    def __init__(self, store: Store, cases: int) -> None:
        self._store = store
        self._cases = cases

    @property
    def path(self) -> Path:
        """The folder."""
        return self._store.path

    @property
    def files(self) -> list[Path]:
        """The blocks' files, in the order of the cases."""
        return self._store.files()

    def __len__(self) -> int:
        return self._cases

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._store.stream(requested_schema)

    def summary(self) -> Listing:
        """For each workload, machine and policy: cases, those that failed, and the mean energy and time over the reference
        policy's in the same draws. Needs pyarrow."""
        pyarrow = optional("pyarrow", "summary", "sweep")
        by = ["workload", "machine", "policy"]
        wanted = [("energy_ratio", "sum"), ("elapsed_ratio", "sum"), ("energy_ratio", "count"), ("case", "count")]
        sums: dict[tuple[str, str, str], list[float]] = {}
        # Batch by batch: a sweep may be larger than memory.
        for batch in pyarrow.RecordBatchReader.from_stream(self):
            table = pyarrow.Table.from_batches([batch])
            for name in by:
                table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(pyarrow.string()))
            for row in table.group_by(by, use_threads=False).aggregate(wanted).to_pylist():
                entry = sums.setdefault((row["workload"], row["machine"], row["policy"]), [0.0, 0.0, 0.0, 0.0])
                entry[0] += row["case_count"]
                entry[1] += row["case_count"] - row["energy_ratio_count"]
                entry[2] += row["energy_ratio_sum"] or 0.0
                entry[3] += row["elapsed_ratio_sum"] or 0.0
        rows = []
        for (workload, model, policy), (cases, failed, energy, elapsed) in sums.items():
            done = cases - failed
            means = {"energy_ratio": energy / done if done else None, "elapsed_ratio": elapsed / done if done else None}
            rows.append(
                {"workload": workload, "machine": model, "policy": policy, "cases": int(cases), "failed": int(failed), **means}
            )
        return Listing(rows)

    def plot(self) -> Any:
        """Energy against time, over the reference policy's: one point a policy. Needs altair and pyarrow."""
        altair = optional("altair", "plot", "plot")
        scale = altair.Scale(zero=False)
        return (
            altair.Chart(altair.Data(values=list(self.summary())))
            .mark_point(filled=True)
            .encode(
                x=altair.X("elapsed_ratio:Q", scale=scale, title="time over the reference's"),
                y=altair.Y("energy_ratio:Q", scale=scale, title="energy over the reference's"),
                color="machine:N",
                shape="workload:N",
                tooltip=["workload:N", "machine:N", "policy:N", "energy_ratio:Q", "elapsed_ratio:Q"],
            )
        )

    def __repr__(self) -> str:
        return f"<wattwise.Sweep {line(self.path)}: {self._cases:,} cases in {len(self.files)} files>"

    def _repr_html_(self) -> str:
        return f"<p>{self._cases:,} cases in {len(self.files)} files in <code>{markup(self.path)}</code></p>"


def _blocks(plan: engine.Plan, block_s: float) -> list[tuple[int, int]]:
    """Blocks of at least about ``block_s``, at most ``MOST_BLOCKS`` in all. How the cases are cut changes no result.

    The first cases of some pairs of workload and machine are timed. The reference policy is run once for each draw that a
    block has a part of, so blocks are whole draws, but where a draw is very long.
    """
    pairs = plan.pairs()
    costs = {i: _cost(plan, *pairs[i][:2], block_s) for i in range(0, len(pairs), max(1, len(pairs) // _PROBED))}
    mean = sum(costs.values()) / len(costs)
    total = sum(count * costs.get(i, mean) for i, (_, count, _) in enumerate(pairs))
    length = max(block_s, total / max(1, MOST_BLOCKS - len(pairs)))
    blocks = []
    for i, (first, count, policies) in enumerate(pairs):
        cost = costs.get(i, mean)
        size = policies * max(1, math.ceil(length / (cost * policies)))
        if size == policies and cost * policies > _LONG * length:
            size = math.ceil(_LONG * length / cost)
        blocks += [(at, min(at + size, first + count)) for at in range(first, first + count, size)]
    return blocks


def _cost(plan: engine.Plan, first: int, count: int, block_s: float) -> float:
    """Seconds a case, from the first cases of a pair."""
    cases = 1
    while True:
        since = time.perf_counter()
        plan.run(first, first + cases)
        taken = time.perf_counter() - since
        if taken > 0.05 * block_s or cases == count:
            return max(taken / cases, 1e-9)
        cases = min(count, cases * 4)


def sweep(
    workloads: AnyWorkload | Iterable[AnyWorkload] = "build",
    machines: AnyMachine | Iterable[AnyMachine] | None = None,
    policies: AnyPath | Entry | Iterable[AnyPath | Entry] | None = None,
    *,
    replicas: int = 8,
    seed: int = 0,
    reference: str | None = None,
    goal: str = "energy",
    max_slowdown: Share = "10%",
    budget: str = "events=1e9",
    client: Any = None,
    out: AnyPath = "sweep.parquet",
    resume: bool = True,
    threads: int | None = None,
    block_s: float = 1.0,
    progress: bool | None = None,
) -> Sweep:
    """All workloads on all machines under all policies, each in ``replicas`` draws of what is uncertain: one row a case.

    The rows are the same whatever runs them: some threads here, or any number of workers of ``client``. They come as they are
    done, into a folder, one file a block; run again with the same arguments, it goes on where it stopped. A block
    counts by its content: one that is damaged or another's is made again, with a warning. A case that fails or does not end has the reason in its column ``error``, and the sweep goes on.

    Columns: ``case``, ``workload``, ``machine``, ``policy``, ``draw``; ``elapsed_s`` and ``energy_j`` of the work alone,
    ``window_energy_j`` over the window that the reference policy sets, ``time`` (what is judged: seconds of makespan or of noticed waiting, or the
    share of deadlines missed), ``wake_p99_s``, ``energy_ratio`` and ``elapsed_ratio`` over the reference policy's in the same draw,
    ``transitions``, ``error``.

    :param workloads: bundled workloads, files, or :class:`Workload`
    :param machines: bundled models, files, ``this``, or :class:`Machine`; by default each recording's own
    :param policies: texts, scans among them (``schedutil:rate_limit=1ms..20ms:n5``); by default those of each machine's system
    :param replicas: draws of each case; draw 0 of seed 0 is the first replica of :func:`compare`
    :param budget: the most that one case may take
    :param client: a ``dask.distributed.Client``, a cluster of Dask or a scheduler's address; without one all CPUs of this
        computer are used
    :param out: the folder: ``*.parquet`` (needs pyarrow) or ``*.arrow`` (needs nothing)
    :param resume: whether to go on with a folder that is there; else it must not be
    :param threads: here, without ``client``: how many cases at a time; by default as many as there are CPUs
    :param block_s: least length of a block, in seconds
    :param progress: whether to show how far it has come; by default on a terminal and in a notebook

    The other arguments are those of :func:`compare`.
    """
    works = [load(work) for work in several(workloads, "workloads", "workloads")]
    models = [] if machines is None else [machine(one) for one in several(machines, "machines", "machines")]
    if machines is not None and not models:
        raise refused("machines: an empty list; expected one or more, or None for each recording's own")
    rest = {
        "policies": [policy for text in _policies(policies) for policy in engine.expand(text)],
        "reference": arguments.maybe_text(reference, "reference", "a policy as text, or None"),
        "goal": arguments.text(goal, "goal", "energy, own-energy, edp or time"),
        "max_slowdown": arguments.increase(max_slowdown, "max_slowdown"),
        "replicas": arguments.whole(replicas, "replicas", 1, 2**32 - 1),
        "seed": arguments.whole(seed, "seed"),
        "budget": arguments.text(budget, "budget", "text such as events=1e9"),
    }
    here = _cpus() if threads is None else arguments.whole(threads, "threads", 1, _MOST_THREADS, ", or None for all CPUs")
    length = arguments.number(block_s, "block_s", "seconds, more than 0", 1e-12, 1e6)
    goes_on = arguments.flag(resume, "resume")
    folder = arguments.path(out, "out", "a folder that ends in .parquet or .arrow")
    shown = Progress("cases", arguments.maybe_flag(progress, "progress"))
    order = Order(works, models, rest)
    plan = made(order.spec, works, models)
    with Store(folder, order.spec, order.sha256, len(plan)) as store, _cluster(client) as connected:
        blocks = store.open(goes_on, lambda: _blocks(plan, length))
        todo = [n for n in range(len(blocks)) if not store.has(n)]
        done = len(plan) - sum(blocks[n][1] - blocks[n][0] for n in todo)
        tell: Callable[[int], None] = lambda now: shown(done + now, len(plan))
        try:
            if connected is None:
                results = _here(plan, blocks, todo, here, tell)
            else:
                from ._dask import on_cluster

                results = on_cluster(connected, order.text, order.inputs, blocks, todo, store.is_parquet, tell)
            for number, data in results:
                store.write(number, data)
        except KeyboardInterrupt:
            kept = sum(last - first for n, (first, last) in enumerate(blocks) if store.has(n))
            went = f"stopped after {kept} of {len(plan)} cases, which are kept: the same call with resume=True goes on from there"
            raise KeyboardInterrupt(went) from None
        finally:
            shown.end()
    return Sweep(store, len(plan))


def _policies(policies: object) -> list[str]:
    expected = "policies as text"
    asked = [] if policies is None else several_policies(policies)
    for one in asked:
        if isinstance(one, type):
            raise arguments.wrong("policies", one, f"{expected}: only compare() takes a class")
    return [policy_text(one, expected) for one in asked]


def _cluster(client: object) -> AbstractContextManager[Any]:
    """A client for a cluster; none for this computer."""
    if client is None:
        return nullcontext()
    from ._dask import connected

    return connected(client)


def _cpus() -> int:
    return len(os.sched_getaffinity(0))


def _here(
    plan: engine.Plan, blocks: Sequence[tuple[int, int]], todo: Sequence[int], threads: int, tell: Callable[[int], None]
) -> Iterator[tuple[int, bytes]]:
    running = plan.start([blocks[n] for n in todo], threads)
    try:
        while (got := running.next()) is not None:
            block, cases = got
            tell(cases)
            if block is not None:
                yield todo[block[0]], block[1]
    finally:
        running.stop()
