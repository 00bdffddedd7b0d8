"""A policy's settings for the work and the machine at hand, tested on recordings that the search did not see."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any

from . import _wattwise as engine
from ._inputs import AnyMachine, AnyWorkload, load, machine
from ._listing import rows_html
from ._progress import Progress
from ._shares import Share, share
from ._wattwise import Error


class Tuned:
    """What a search found (schema ``wattwise.tune/1``)."""

    def __init__(self, text: str) -> None:
        self._json = text
        self._data: dict[str, Any] = json.loads(text)

    @property
    def verdict(self) -> str:
        """What follows, in words."""
        return str(self._data["verdict"]["text"])

    @property
    def worth_it(self) -> bool | None:
        """Whether the policy is worth using; None where there was no test."""
        worth: bool | None = self._data["verdict"]["worth_it"]
        return worth

    @property
    def policy(self) -> str:
        """The policy that was found, as other calls take it."""
        return str(self._data["winner"]["policy"])

    @property
    def file(self) -> str:
        """The same as a policy file's text."""
        return str(self._data["winner"]["file"])

    @property
    def front(self) -> list[dict[str, Any]]:
        """Policies that no other beats in everything: policy, cost, time and 99th percentile of waits, over the reference's."""
        return list(self._data["front"])

    def to_json(self) -> str:
        """What ``wattwise tune --json`` prints, without the last line break."""
        return self._json

    def to_dict(self) -> dict[str, Any]:
        """The same as Python's values."""
        copy: dict[str, Any] = json.loads(self._json)
        return copy

    def __str__(self) -> str:
        return self.verdict

    def __repr__(self) -> str:
        return f"<wattwise.Tuned {self.policy}: {self.verdict}>"

    def _repr_html_(self) -> str:
        head = ("policy", "cost ratio", "time ratio", "p99 ratio")
        rows = [(p["policy"], f"{p['cost_ratio']:.4f}", f"{p['time_ratio']:.4f}", f"{p['p99_ratio']:.3f}") for p in self.front]
        return f"<p><b>{html.escape(self.verdict)}</b></p>" + rows_html(head, rows)


def tune(
    workloads: AnyWorkload | Sequence[AnyWorkload] | None = None,
    machines: AnyMachine | Sequence[AnyMachine] | None = None,
    *,
    space: str,
    trials: int | None = None,
    time_s: float | None = None,
    test: Sequence[AnyWorkload] = (),
    reference: str | None = None,
    goal: str = "energy",
    max_slowdown: Share = "10%",
    max_p99: Share = "any",
    replicas: int = 64,
    seed: int = 1,
    budget: str = "",
    progress: bool | None = None,
) -> Tuned:
    """Searches a policy's settings. With the same arguments it gives what ``wattwise tune --json`` gives.

    :param workloads: recordings, half of which are kept for the test; by default the bundled recordings
    :param machines: machines; by default each recording's own
    :param space: what is searched: ``burst``, ``schedutil,caps``, ``burst:busy=0..20,idle=0..40`` or a file
    :param trials: the most policies to look at (400 where neither this nor ``time_s`` is given)
    :param time_s: the most time to search, in seconds
    :param test: recordings for the test, which the search does not see
    :param max_p99: policies whose 99th percentile of waits is more than this above the reference's are not taken
    :param replicas: runs of the test with other phases, seeds and figures
    :param seed: of the search, the split and the draws

    The other arguments are those of :func:`compare`.
    """
    tests = [load(work) for work in test]
    if workloads is None:
        kept = {work.name for work in tests}
        names = [entry[0] for entry in engine.workload_list() if entry[1].startswith("recorded")]
        works = [load(name) for name in names if name not in kept]
    else:
        works = [load(work) for work in several(workloads)]
    if not works:
        raise Error("tune: no workload; expected one or more")
    models = [] if machines is None else [machine(one) for one in several(machines)]
    shown = Progress("looked at", progress)
    try:
        text = engine.tune(
            works + tests,
            len(tests),
            models,
            space,
            trials=trials,
            time_s=time_s,
            reference=reference,
            goal=goal,
            max_slowdown=share(max_slowdown, "--max-slowdown"),
            max_p99=share(max_p99, "--max-p99"),
            replicas=replicas,
            seed=seed,
            budget_text=budget,
            progress=shown,
        )
    finally:
        shown.end()
    return Tuned(text)


def several(one: Any) -> list[Any]:
    """One thing, or some."""
    return list(one) if isinstance(one, Sequence) and not isinstance(one, str) else [one]
