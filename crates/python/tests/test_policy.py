"""Policies written in Python: the same numbers as in Rust, and what becomes of those that fail."""

from __future__ import annotations

import time

import pytest

import wattwise
from wattwise import Cadence, Intent, Observation, Platform, SpeedPolicy


class Highest(SpeedPolicy):
    """`performance`."""

    def cadence(self) -> Cadence:
        return Cadence.once()

    def start(self, now: Observation) -> list[int | None]:
        return [domain.fastest_khz for domain in self.platform.domains]


class MyOndemand(SpeedPolicy):
    """`ondemand` with its defaults, as crates/policy/src/speed/{ondemand,governor}.rs have it."""

    name = "my-ondemand"
    cost_ns = 2000
    up = 95

    def __init__(self, platform: Platform) -> None:
        super().__init__(platform)
        delay = max(domain.transition_delay_ns for domain in platform.domains)
        self.period = max(delay, 2 * platform.tick_ns, 1)
        self.before_sleep = [0] * platform.cpus

    def cadence(self) -> Cadence:
        return Cadence.scheduler(self.period)

    def start(self, now: Observation) -> list[int | None]:
        both = zip(self.platform.domains, now.domains)
        return [domain.at_least(found.khz) if found.khz else domain.fastest_khz for domain, found in both]

    def percent(self, cpu: int, now: Observation) -> int:
        sample = now.cpus[cpu]
        idle = sample.idle_ns + sample.iowait_ns
        total = sample.busy_ns + idle
        before = self.before_sleep[cpu]
        if total == 0:
            return before
        if idle > 2 * self.period and before > 0:
            self.before_sleep[cpu] = 0
            return before
        self.before_sleep[cpu] = 100 * (total - idle) // total
        return self.before_sleep[cpu]

    def observe(self, now: Observation) -> int | None:
        if now.scope != "domain" or now.number is None:
            return None
        domain = self.platform.domains[now.number]
        load = max(self.percent(cpu, now) for cpu in domain.cpus)
        if load > self.up:
            return domain.fastest_khz
        span = domain.fastest_khz - domain.slowest_khz
        return domain.nearest(domain.slowest_khz + span * load // 100)


def figures(told: wattwise.Comparison, policy: str) -> dict[str, object]:
    """All that a comparison says of a policy but its name and its standing among others."""
    (found,) = [r for r in told.to_dict()["results"] if r["policy"] == policy]
    return {k: v for k, v in found.items() if k not in ("policy", "best_share", "approximation")}


@pytest.mark.parametrize("machine", ["xeon-4210", "i7-4510u", "alderlake-p-laptop"])
@pytest.mark.parametrize(("cls", "name", "rust"), [(Highest, "Highest", "performance"), (MyOndemand, "my-ondemand", "ondemand")])
def test_the_same_numbers_as_in_rust(machine: str, cls: type[SpeedPolicy], name: str, rust: str) -> None:
    told = wattwise.compare("tbench", machine, [cls, rust], replicas=8)
    assert figures(told, name) == figures(told, rust)


def test_another_threshold_gives_other_numbers() -> None:
    class Lower(MyOndemand):
        name = "lower"
        up = 20

    told = wattwise.compare("build", "xeon-4210", [Lower, "ondemand", "ondemand:up=20"], replicas=8)
    assert figures(told, "lower") == figures(told, "ondemand:up=20") != figures(told, "ondemand")


def test_a_tuple_with_none_leaves_domains_as_they_are() -> None:
    class FirstOnly(SpeedPolicy):
        def start(self, now: Observation) -> tuple[int | None, ...]:
            return (self.platform.domains[0].slowest_khz,) + (None,) * (len(self.platform.domains) - 1)

        def observe(self, now: Observation) -> None:
            return None

    told = wattwise.compare("tbench", "xeon-4210", [FirstOnly, "performance+max=min", "performance"], exact=True)
    first, none, all_of_them = (figures(told, name) for name in ("FirstOnly", "performance+max=min", "performance"))
    speeds = {r["khz"] for r in first["speed_residency"]}  # type: ignore[attr-defined]
    assert len(speeds) >= 2 and first != none and first != all_of_them


def test_an_intent_has_limits_and_its_own_period() -> None:
    seen: list[int] = []

    class Capped(SpeedPolicy):
        def observe(self, now: Observation) -> Intent:
            seen.append(now.now_ns)
            assert now.scope == "all" and len(now.cpus) == self.platform.cpus
            assert all(0.0 <= sample.load <= 1.0 for sample in now.cpus)
            return Intent(
                [d.fastest_khz for d in self.platform.domains], max_khz=self.platform.domains[0].slowest_khz, next_ns=5_000_000
            )

    told = wattwise.compare("build", "xeon-4210", [Capped, "powersave"], exact=True)
    slowest = min(min(levels) for levels in wattwise.machine("xeon-4210").levels_khz)
    (capped,) = [r for r in told.to_dict()["results"] if r["policy"] == "Capped"]
    speeds = {r["khz"] for r in capped["speed_residency"] if r["s"] > 0.5}
    assert slowest in speeds
    assert {b - a for a, b in zip(seen[1:50], seen[2:50])} == {5_000_000}


class Raises(SpeedPolicy):
    def observe(self, now: Observation) -> None:
        raise RuntimeError("no idea")


class RaisesFirst(SpeedPolicy):
    def __init__(self, platform: Platform) -> None:
        raise KeyError("x")


class SaysNan(SpeedPolicy):
    def observe(self, now: Observation) -> float:
        return float("nan")


class SaysText(SpeedPolicy):
    def observe(self, now: Observation) -> str:  # type: ignore[override]
        return "fast"


class SaysTrue(SpeedPolicy):
    def observe(self, now: Observation) -> bool:
        return True


class SaysNegative(SpeedPolicy):
    def start(self, now: Observation) -> int:
        return -1


class SaysTooFew(SpeedPolicy):
    def observe(self, now: Observation) -> list[int | None]:
        return [1]


class NoCadence(SpeedPolicy):
    def cadence(self) -> str:  # type: ignore[override]
        return "often"


@pytest.mark.parametrize(
    ("cls", "told"),
    [
        (Raises, "Raises: observe raised RuntimeError: no idea"),
        (RaisesFirst, "RaisesFirst: __init__ raised KeyError: 'x'"),
        (SaysNan, "SaysNan: observe returned nan; expected a speed in kHz"),
        (SaysText, "SaysText: observe returned 'fast'; expected a speed in kHz"),
        (SaysTrue, "SaysTrue: observe returned True; expected a speed in kHz"),
        (SaysNegative, "SaysNegative: start returned -1; expected a speed in kHz"),
        (SaysTooFew, "there are 20 domains"),
        (NoCadence, "NoCadence: cadence returned no wattwise.Cadence"),
    ],
)
def test_a_policy_that_fails_is_named(cls: type[SpeedPolicy], told: str) -> None:
    with pytest.raises(wattwise.Error) as caught:
        wattwise.compare("build", "xeon-4210", [cls, "performance"], replicas=64)
    assert told in str(caught.value) and "\n" not in str(caught.value)


def test_the_policy_s_own_exception_is_the_cause() -> None:
    with pytest.raises(wattwise.Error) as caught:
        wattwise.compare("build", "xeon-4210", Raises, replicas=8)
    assert isinstance(caught.value.__cause__, RuntimeError)


def loops() -> list[type[SpeedPolicy]]:
    class Loops(SpeedPolicy):
        def observe(self, now: Observation) -> None:
            while True:
                pass

    class Catches(SpeedPolicy):
        def observe(self, now: Observation) -> None:
            give_up = time.monotonic() + 1.5
            while time.monotonic() < give_up:
                try:
                    while time.monotonic() < give_up:
                        pass
                except TimeoutError:
                    pass

    class Hangs(SpeedPolicy):
        def observe(self, now: Observation) -> None:
            time.sleep(6)

    return [Loops, Catches, Hangs]


@pytest.mark.parametrize("cls", loops())
def test_a_policy_that_does_not_return_is_ended(cls: type[SpeedPolicy]) -> None:
    since = time.monotonic()
    with pytest.raises(wattwise.Error, match="observe had not returned after 0.2 s"):
        wattwise.compare("build", "xeon-4210", cls, replicas=8, call_limit_s=0.2)
    assert time.monotonic() - since < 5
    # Nothing is left of it.
    assert wattwise.compare("burst", "i7-4510u", [Highest, "performance"], exact=True).recommended


def test_names_and_classes_that_are_none() -> None:
    class Taken(SpeedPolicy):
        name = "performance"

    class NoPolicy:
        pass

    for cls, told in ((Taken, "a policy of wattwise has this name"), (NoPolicy, "has no method 'cadence'")):
        with pytest.raises(wattwise.Error, match=told):
            wattwise.compare("burst", "i7-4510u", cls)  # type: ignore[arg-type]
    with pytest.raises(wattwise.Error, match="two policies have this name"):
        wattwise.compare("burst", "i7-4510u", [Highest, Highest])
    with pytest.raises(wattwise.Error, match="call_limit_s=0"):
        wattwise.compare("burst", "i7-4510u", Highest, call_limit_s=0)
    with pytest.raises(wattwise.Error, match="expected policies as text"):
        wattwise.sweep("burst", "i7-4510u", [Highest], out="x.arrow")  # type: ignore[list-item]
