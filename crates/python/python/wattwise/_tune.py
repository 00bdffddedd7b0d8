"""A policy's settings for the work and the machine at hand, tested on recordings that the search did not see."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from . import _arguments as arguments
from . import _wattwise as engine
from ._arguments import Share, refused, several
from ._inputs import AnyMachine, AnyPath, AnyWorkload, load, machine
from ._listing import line, markup, rows_html
from ._progress import Progress


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
    def apply(self) -> str | None:
        """The command that puts it in force, where there is one and the test did not find the policy not worth it."""
        line: str | None = self._data["winner"]["apply"]
        return line

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
        return line(self.verdict)

    def __repr__(self) -> str:
        return line(f"<wattwise.Tuned {self.policy}: {self.verdict}>")

    def _repr_html_(self) -> str:
        head = ("policy", "cost ratio", "time ratio", "p99 ratio")
        rows = [(p["policy"], f"{p['cost_ratio']:.4f}", f"{p['time_ratio']:.4f}", f"{p['p99_ratio']:.3f}") for p in self.front]
        return f"<p><b>{markup(self.verdict)}</b></p>" + rows_html(head, rows)


def tune(
    workloads: AnyWorkload | Iterable[AnyWorkload] | None = None,
    machines: AnyMachine | Iterable[AnyMachine] | None = None,
    *,
    space: AnyPath,
    trials: int | None = None,
    time_s: float | None = None,
    test: AnyWorkload | Iterable[AnyWorkload] = (),
    reference: str | None = None,
    goal: str = "energy",
    max_slowdown: Share = "10%",
    max_p99: Share = "any",
    replicas: int = engine.REPLICAS,
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
    :param test: recordings for the test, which the search does not see: none of them may be among the others, by name or by content
    :param max_p99: policies whose 99th percentile of waits is more than this above the reference's are not taken
    :param replicas: runs of the test with other phases, seeds and figures
    :param seed: of the search, the split and the draws

    The other arguments are those of :func:`compare`.
    """
    tests = [load(work) for work in several(test, "test", "recordings")]
    if workloads is None:
        kept = {work.name for work in tests}
        names = [entry[0] for entry in engine.workload_list() if entry[1].startswith("recorded")]
        works = [load(name) for name in names if name not in kept]
    else:
        works = [load(work) for work in several(workloads, "workloads", "recordings")]
    if not works:
        raise refused("workloads: no workload; expected one or more, or None for the bundled recordings")
    models = [] if machines is None else [machine(one) for one in several(machines, "machines", "machines")]
    if machines is not None and not models:
        raise refused("machines: an empty list; expected one or more, or None for each recording's own")
    options: dict[str, Any] = {
        "trials": None if trials is None else arguments.whole(trials, "trials", 1),
        "time_s": None if time_s is None else arguments.number(time_s, "time_s", "seconds, more than 0", 1e-9, 1e9),
        "reference": arguments.maybe_text(reference, "reference", "a policy as text, or None"),
        "goal": arguments.text(goal, "goal", "energy, own-energy, edp or time"),
        "max_slowdown": arguments.increase(max_slowdown, "max_slowdown"),
        "max_p99": arguments.increase(max_p99, "max_p99"),
        "replicas": arguments.whole(replicas, "replicas", engine.LEAST_TEST_REPLICAS, 4096),
        "seed": arguments.whole(seed, "seed"),
        "budget_text": arguments.text(budget, "budget", "text such as events=1e10"),
    }
    searched = arguments.path(space, "space", "what is searched, such as 'burst' or 'schedutil,caps', or a file")
    shown = Progress("looked at", arguments.maybe_flag(progress, "progress"))
    try:
        text = engine.tune(
            works + tests,
            len(tests),
            models,
            searched,
            progress=shown,
            **options,
        )
    finally:
        shown.end()
    return Tuned(text)
