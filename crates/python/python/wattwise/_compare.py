"""The main job: the same work under several policies."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any, Union

from . import _arguments as arguments
from . import _wattwise as engine
from ._arguments import Share, refused
from ._inputs import AnyMachine, AnyWorkload, Entry, load, machine_for
from ._listing import line, markup, rows_html
from ._optional import optional
from ._policy import SpeedPolicy
from ._progress import Progress
from ._wattwise import Table

POLICIES = "policies as text, or classes like wattwise.SpeedPolicy"
AnyPolicy = Union[str, "os.PathLike[str]", Entry, type[SpeedPolicy]]


class Comparison:
    """What a comparison says. Figures without an interval are of the nominal run."""

    def __init__(self, compared: engine.Compared) -> None:
        self._compared = compared
        self._json = compared.json()
        self._data: dict[str, Any] = json.loads(self._json)

    @property
    def answer(self) -> str:
        """The answer in a sentence or two."""
        return str(self._data["answer"]["text"])

    @property
    def winner(self) -> str | None:
        """The best policy, where one is told apart from all others."""
        winner: str | None = self._data["answer"]["winner"]
        return winner

    @property
    def recommended(self) -> str:
        """The policy to use: the winner, or of those that cannot be told apart the reference, else the simplest."""
        return str(self._data["answer"]["recommended"])

    @property
    def tied(self) -> list[str]:
        """Policies that cannot be told apart from the recommended one."""
        return list(self._data["answer"]["tied"])

    @property
    def apply(self) -> str | None:
        """The command that puts the recommended policy in force, where there is one."""
        line: str | None = self._data["answer"]["apply"]
        return line

    @property
    def reference(self) -> str:
        """The policy that the others are held against."""
        return str(self._data["reference"])

    @property
    def machine(self) -> str:
        """The machine's name."""
        return str(self._data["machine"])

    @property
    def workload(self) -> str:
        """The workload's name."""
        return str(self._data["workload"]["name"])

    @property
    def table(self) -> Table:
        """One row a policy, as an Arrow table: ``pandas.DataFrame.from_arrow``, ``polars.DataFrame`` and ``pyarrow.table`` take it.
        The columns are the JSON's fields, with its units."""
        return self._compared.table()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def to_json(self) -> str:
        """What ``wattwise compare --json`` prints (schema ``wattwise-compare-3``), without the last line break."""
        return self._json

    def to_dict(self) -> dict[str, Any]:
        """The same as Python's values."""
        copy: dict[str, Any] = json.loads(self._json)
        return copy

    def __str__(self) -> str:
        return line(self.answer)

    def __repr__(self) -> str:
        return line(f"<wattwise.Comparison {self.workload} on {self.machine}: {self.answer}>")

    def _repr_html_(self) -> str:
        answer = f"<p><b>{markup(self.answer)}</b></p>"
        what = f"<p>{markup(self.workload)} on {markup(self.machine)}, against {markup(self.reference)}</p>"
        head = ("policy", "time (s)", "energy (J)", "energy ratio", "time ratio", "best in", "")
        rows = [
            (
                r["policy"],
                f"{r['elapsed_s']:.4g}",
                f"{r['window_energy_j']:.4g}",
                "own time" if r["over_own_time"] else _interval(r["uncertain"]["energy_ratio"]),
                _interval(r["uncertain"]["time_ratio"]),
                f"{100 * r['best_share']:.0f} %",
                "" if r["admissible"] else "too slow",
            )
            for r in self._data["results"]
        ]
        return answer + what + rows_html(head, rows) + self._chart()

    def _chart(self) -> str:
        """Energy against time, both over the reference policy's, with their intervals: one point a policy."""
        points = [
            (r["policy"], r["uncertain"]["time_ratio"], r["uncertain"]["energy_ratio"], r["tied"]) for r in self._data["results"]
        ]
        width, height, edge = 560, 320, 48
        across = _scale([t[k] for _, t, _, _ in points for k in ("low", "high")], edge, width - edge)
        upwards = _scale([e[k] for _, _, e, _ in points for k in ("low", "high")], height - edge, edge / 2)
        parts = [
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' font-family='sans-serif' font-size='11'>"
        ]
        parts.append(
            f"<rect x='{edge}' y='{edge / 2}' width='{width - 2 * edge}' height='{height - 1.5 * edge}' fill='none' stroke='#999'/>"
        )
        for value in across.ticks:
            parts.append(f"<text x='{across(value):.1f}' y='{height - edge + 14}' text-anchor='middle'>{value:.3g}</text>")
        for value in upwards.ticks:
            parts.append(f"<text x='{edge - 4}' y='{upwards(value) + 4:.1f}' text-anchor='end'>{value:.3g}</text>")
        parts.append(
            f"<text x='{width / 2}' y='{height - 8}' text-anchor='middle'>time over {markup(self.reference)}</text>"
        )
        parts.append(f"<text x='12' y='{height / 2}' text-anchor='middle' transform='rotate(-90 12 {height / 2})'>energy</text>")
        for name, time, energy, tied in points:
            colour = "#0a7d32" if tied else "#555"
            x, y = across(time["median"]), upwards(energy["median"])
            parts.append(
                f"<path d='M{across(time['low']):.1f} {y:.1f}H{across(time['high']):.1f}M{x:.1f} {upwards(energy['low']):.1f}V{upwards(energy['high']):.1f}' stroke='{colour}' opacity='.5'/>"
            )
            parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4' fill='{colour}'><title>{markup(name)}</title></circle>")
            parts.append(f"<text x='{x + 6:.1f}' y='{y - 4:.1f}' fill='{colour}'>{markup(name)}</text>")
        return "".join(parts) + "</svg>"

    def plot(self) -> Any:
        """The same chart by altair, where it is installed (``pip install wattwise[plot]``)."""
        altair = optional("altair", "plot", "plot")
        rows = [
            {
                "policy": r["policy"],
                "time_ratio": r["uncertain"]["time_ratio"]["median"],
                "time_low": r["uncertain"]["time_ratio"]["low"],
                "time_high": r["uncertain"]["time_ratio"]["high"],
                "energy_ratio": r["uncertain"]["energy_ratio"]["median"],
                "energy_low": r["uncertain"]["energy_ratio"]["low"],
                "energy_high": r["uncertain"]["energy_ratio"]["high"],
                "tied": r["tied"],
            }
            for r in self._data["results"]
        ]
        axis = altair.Scale(zero=False)
        base = altair.Chart(altair.Data(values=rows)).encode(
            x=altair.X("time_ratio:Q", scale=axis, title=f"time over {self.reference}"),
            y=altair.Y("energy_ratio:Q", scale=axis, title=f"energy over {self.reference}"),
            color=altair.Color("tied:N", title="best, or no clear difference"),
            tooltip=["policy:N", "time_ratio:Q", "energy_ratio:Q"],
        )
        spread = base.mark_rule(opacity=0.5).encode(y="energy_low:Q", y2="energy_high:Q")
        along = base.mark_rule(opacity=0.5).encode(x="time_low:Q", x2="time_high:Q")
        return (
            spread
            + along
            + base.mark_point(filled=True, size=60)
            + base.mark_text(dx=8, dy=-8, align="left").encode(text="policy:N")
        ).properties(title=f"{self.workload} on {self.machine}")


class _Scale:
    def __init__(self, low: float, high: float, first: float, last: float) -> None:
        self._low, self._high, self._first, self._last = low, high, first, last
        self.ticks = [low + (high - low) * i / 4 for i in range(5)]

    def __call__(self, value: float) -> float:
        return self._first + (value - self._low) / (self._high - self._low) * (self._last - self._first)


def _scale(values: Sequence[float], first: float, last: float) -> _Scale:
    low, high = min(values), max(values)
    margin = 0.05 * (high - low) or 0.05
    return _Scale(low - margin, high + margin, first, last)


def _interval(of: dict[str, float]) -> str:
    return f"{of['median']:.3f} ({of['low']:.3f} to {of['high']:.3f})"


def compare(
    workload: AnyWorkload = "build",
    machine: AnyMachine | None = None,
    policies: AnyPolicy | Iterable[AnyPolicy] | None = None,
    *,
    reference: str | None = None,
    goal: str = "energy",
    max_slowdown: Share = "10%",
    replicas: int = engine.REPLICAS,
    exact: bool = False,
    seed: int = 0,
    system: str | None = None,
    power: str = "unknown",
    latency_limit_us: float | None = None,
    budget: str = "",
    call_limit_s: float = 1.0,
    progress: bool | None = None,
) -> Comparison:
    """The same work under several policies on a machine model: how long, how many joules, and which is best.

    With the same arguments it gives what ``wattwise compare`` gives, to the bit. The engine runs on all CPUs without Python's
    lock; Ctrl-C ends it.

    :param workload: a bundled workload, a file, or a :class:`Workload`
    :param machine: a bundled model, a model's file, ``this``, a capture, or a :class:`Machine`; by default the recording's own
    :param policies: texts as ``--policy`` takes them, scans too (``schedutil:rate_limit=1ms..20ms:n5``), and classes like
        :class:`SpeedPolicy`; by default those that the machine's system offers
    :param reference: the policy that the others are compared with; by default the machine's own
    :param goal: what is to be small: ``energy``, ``own-energy``, ``edp`` or ``time``
    :param max_slowdown: a policy is recommended only if it is at most this much slower than the reference in 95 % of the
        replicas: ``"10%"``, ``0.1``, ``"1.1x"``, ``"any"``
    :param replicas: how many times to repeat the comparison with the uncertain inputs varied, 8 to 4096
    :param exact: one run of the nominal model, without intervals
    :param seed: other draws of what is uncertain; 0 has those of the command line
    :param system: without ``policies``: those of ``linux``, ``freebsd``, ``openbsd`` or ``any``
    :param power: ``mains`` or ``battery``, for policies that ask
    :param latency_limit_us: longest C-state exit latency to tolerate, in microseconds
    :param budget: the most that a replay may take, such as ``events=1e9``
    :param call_limit_s: how long one call of a policy written in Python may take, in seconds
    :param progress: whether to show how far it has come; by default on a terminal and in a notebook
    """
    work = load(workload)
    asked = [] if policies is None else [_policy(one) for one in several_policies(policies)]
    options: dict[str, Any] = {
        "system": arguments.maybe_text(system, "system", "linux, freebsd, openbsd or any"),
        "reference": arguments.maybe_text(reference, "reference", "a policy as text, or None"),
        "goal": arguments.text(goal, "goal", "energy, own-energy, edp or time"),
        "max_slowdown": arguments.increase(max_slowdown, "max_slowdown"),
        "replicas": 0 if arguments.flag(exact, "exact") else arguments.whole(replicas, "replicas", 8, 4096),
        "seed": arguments.whole(seed, "seed"),
        "power": arguments.text(power, "power", "unknown, mains or battery"),
        "latency_limit_us": _latency(latency_limit_us),
        "budget_text": arguments.text(budget, "budget", "text such as events=1e9"),
        "call_limit_s": arguments.number(call_limit_s, "call_limit_s", "seconds, more than 0", 1e-9),
    }
    model = machine_for(work, machine)
    shown = Progress("replaying", arguments.maybe_flag(progress, "progress"))
    try:
        compared = engine.compare(work, model, asked, progress=shown, **options)
    finally:
        shown.end()
    return Comparison(compared)


def several_policies(policies: object) -> list[Any]:
    """What stands for policies, one by one."""
    asked = arguments.several(policies, "policies", POLICIES)
    if not asked:
        raise refused("policies: an empty list; expected one or more, or None for those that the machine's system offers")
    return asked


def _policy(one: object) -> object:
    return one if isinstance(one, type) else policy_text(one, POLICIES)


def policy_text(one: object, expected: str) -> str:
    """A policy as text: what it says, its file, or its name in the list of policies."""
    if isinstance(one, bytes):
        raise arguments.wrong("policies", one, expected)
    return arguments.path(one, "policies", expected)


def _latency(given: float | None) -> float | None:
    expected = "microseconds, more than 0, or None for no limit"
    return None if given is None else arguments.number(given, "latency_limit_us", expected, 1e-3)
