"""What a researcher gives to our functions in the first hour: each value works, or one line says which argument is wrong."""

from __future__ import annotations

import decimal
import enum
import fractions
import inspect
import itertools
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import cli_line

import wattwise

np = pytest.importorskip("numpy")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")


class Text(str):
    """Text of another class."""


class Word(str, enum.Enum):
    ENERGY = "energy"
    BURST = "burst"


class Number(enum.IntEnum):
    EIGHT = 8


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


ODD: list[Any] = [
    *(np.int64(8), np.uint8(8), np.float32(0.5), np.float64("nan"), np.bool_(True), np.array(8), np.array([8, 9])),
    *(np.array([[1.0]]), np.array("burst"), np.array([], dtype=object), np.str_("burst"), np.bytes_(b"burst")),
    *(np.datetime64("2026-01-01"), pandas.Series(["burst"]), pandas.Index(["burst"]), pandas.Series([], dtype=object)),
    *(pandas.NA, pandas.NaT, pandas.DataFrame({"name": ["burst"]}), polars.Series(["burst"]), polars.DataFrame({"a": [1]})),
    *(("burst",), {"burst"}, {"burst": 1}, {"burst": 1}.keys(), {"name": "burst"}, {"name": 3}, iter(["burst"]), range(2)),
    *(Path("burst"), b"burst", b"\xff", Text("burst"), decimal.Decimal("0.5"), decimal.Decimal("NaN"), fractions.Fraction(1, 2)),
    *(Word.ENERGY, Word.BURST, Number.EIGHT, Word, None, True, -1, 0, 1, 8, 0.5, -0.0, math.nan, math.inf, -math.inf),
    *(
        10**400,
        -(10**400),
        2**63,
        2**64,
        1e300,
        1j,
        "",
        " ",
        "\0",
        "a\nb",
        "ü",
        "\udcff",
        "10",
        "10%",
        "any",
        "nan",
        "burst",
        "mains",
    ),
    *([], [None], [math.nan], [[]], {}, set(), object(), Hostile(), len, ValueError, ..., NotImplemented, memoryview(b"burst")),
]


def described(value: object) -> str:
    try:
        return f"{type(value).__name__}: {value!r}"[:60]
    except RuntimeError:
        return type(value).__name__


def tried(call: Callable[..., Any], name: str, value: object, names: set[str], **usual: Any) -> bool:
    """Whether the value is taken; what it raises is one line that names the argument."""
    try:
        call(**(usual | {name: value}))
    except wattwise.Error as e:
        line = str(e)
        assert line and "\n" not in line, (name, described(value), line)
        assert any(word in line for word in names), (name, described(value), line)
        return False
    except Exception as e:
        raise AssertionError(f"{name}={described(value)}: {type(e).__name__}: {e}") from e
    return True


NAMES = {
    "workload": {"workload", "WORKLOAD"},
    "workloads": {"workload", "WORKLOAD"},
    "path_or_name": {"workload", "WORKLOAD"},
    "machine": {"machine"},
    "machines": {"machine"},
    "test": {"test", "workload", "WORKLOAD"},
    # Of a policy the word itself is named, as the program does.
    "policies": {"policies", "policy"},
    "reference": {"reference", "policy"},
    "space": {"space"},
    "client": {"client"},
    "command": {"command", "burst", "record"},
    "output": {"output", "record", "burst"},
}


@pytest.mark.parametrize("name", [p for p in inspect.signature(wattwise.compare).parameters if p != "workload"])
def test_compare_takes_or_names_it(short: Path, name: str) -> None:
    usual = {"workload": short, "machine": "bursts-v1", "policies": "performance", "exact": True}
    if name == "replicas":
        usual["exact"] = False
    taken = [tried(wattwise.compare, name, value, NAMES.get(name, {name}), **usual) for value in ODD]
    assert any(taken) and not all(taken), name


@pytest.mark.parametrize("name", [p for p in inspect.signature(wattwise.sweep).parameters if p != "client"])
def test_sweep_takes_or_names_it(short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    taken = []
    for number, value in enumerate(ODD):
        usual = {"workloads": short, "machines": "bursts-v1", "policies": "performance", "replicas": 1, "out": f"{number}.arrow"}
        taken.append(tried(wattwise.sweep, name, value, NAMES.get(name, {name}), **usual))
    assert any(taken) != (name == "out") and not all(taken), name


@pytest.mark.parametrize("name", list(inspect.signature(wattwise.tune).parameters))
def test_tune_takes_or_names_it(short: Path, name: str) -> None:
    usual = {
        "workloads": short,
        "machines": "bursts-v1",
        "space": "burst:busy=0..3",
        "trials": 1,
        "replicas": 40,
        "progress": False,
    }
    # None of both is the bundled recordings, which take long.
    values = [value for value in ODD if not (name in ("workloads", "trials") and value is None)]
    if name == "time_s":
        values = [value for value in values if value is not None and value is not True]
    taken = [tried(wattwise.tune, name, value, NAMES.get(name, {name}), **usual) for value in values]
    assert not all(taken), name


@pytest.mark.parametrize("name", list(inspect.signature(wattwise.load).parameters))
def test_load_takes_or_names_it(name: str) -> None:
    taken = [tried(wattwise.load, name, value, NAMES.get(name, {name}), **({"path_or_name": "sync"})) for value in ODD]
    assert any(taken) and not all(taken), name


@pytest.mark.parametrize(("call", "name"), [(wattwise.machine, "name"), (wattwise.policy, "name")])
def test_names_are_taken_or_named(call: Callable[..., Any], name: str) -> None:
    taken = [tried(call, name, value, {"name", "machine", "policy", "policies"}) for value in ODD]
    assert any(taken) != (call is wattwise.machine) and not all(taken)


@pytest.mark.parametrize("name", ["command", "output", "foreground", "only_foreground"])
def test_record_takes_or_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("wattwise._inputs.program", lambda: Path("/bin/false"))
    usual = {"command": "true"}
    for value in ODD:
        tried(wattwise.record, name, value, NAMES.get(name, {name}) | {"wattwise ended with exit code 1"}, **usual)


def test_the_types_of_a_notebook(short: Path, tmp_path: Path) -> None:
    """Each of these is what it looks like."""
    plain = wattwise.compare(short, "i7-4510u", ["performance", "powersave"], replicas=8, seed=3, max_slowdown=0.1)
    for given in (
        {
            "machine": wattwise.machines()[wattwise.machines().names.index("i7-4510u")],
            "policies": iter(["performance", "powersave"]),
        },
        {"workload": os.fsencode(short), "policies": np.array(["performance", "powersave"])},
        {"replicas": np.int64(8), "seed": np.uint8(3), "max_slowdown": np.float64(0.1)},
        {"replicas": decimal.Decimal(8), "seed": np.float32(3), "max_slowdown": fractions.Fraction(1, 10)},
        {"policies": polars.Series(["performance", "powersave"]), "max_slowdown": "1.1x", "exact": np.bool_(False)},
        {"policies": pandas.Series(["performance", "powersave"]), "goal": Word.ENERGY, "replicas": Number.EIGHT},
        {"policies": {"performance": 1, "powersave": 2}.keys(), "max_slowdown": Text("10%")},
    ):
        usual = {"workload": short, "machine": "i7-4510u", "policies": ["performance", "powersave"]}
        numbers = {"replicas": 8, "seed": 3, "max_slowdown": 0.1}
        assert wattwise.compare(**(usual | numbers | given)).to_json() == plain.to_json(), given  # type: ignore[arg-type]
    out = {"out": tmp_path / "s.arrow", "policies": ("performance", "powersave")}
    done = wattwise.sweep(short, [m for m in wattwise.machines() if m["name"] == "i7-4510u"], replicas=np.int64(2), **out)  # type: ignore[arg-type]
    again = wattwise.sweep({short}, pandas.Index(["i7-4510u"]), replicas=2, **out)  # type: ignore[arg-type]
    assert len(done) == len(again) == 4
    assert wattwise.load({"name": "burst"}).name == "burst"
    assert wattwise.load("sync", foreground="rsync", memory_bound="20%").tasks == wattwise.load("sync").tasks


def test_a_set_has_an_order(short: Path, tmp_path: Path) -> None:
    """Else the same call would be another sweep after Python has been started anew."""
    done = wattwise.sweep({"tbench", "burst", "sync", short}, "i7-4510u", "performance", replicas=1, out=tmp_path / "s.arrow")
    pyarrow = pytest.importorskip("pyarrow")
    assert pyarrow.table(done)["workload"].to_pylist() == ["short", "burst", "sync", "tbench"]


def test_what_has_no_end_is_no_list() -> None:
    with pytest.raises(wattwise.Error, match="policies: more than 1,000,000"):
        wattwise.compare("burst", policies=itertools.cycle(["performance"]))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"max_slowdown": 10}, "max_slowdown: '10' is no share; expected 10% (or 1.1x, or 0.1), or 10x"),
        ({"max_slowdown": "10"}, "max_slowdown: '10' is no share; expected 10% (or 1.1x, or 0.1), or 10x"),
        ({"latency_limit_us": math.nan}, "latency_limit_us=nan: expected microseconds, more than 0"),
        ({"latency_limit_us": 0}, "latency_limit_us=0: expected microseconds, more than 0"),
        ({"latency_limit_us": -1}, "latency_limit_us=-1: expected"),
        ({"replicas": True}, "replicas=True: expected a whole number, 8 to 4096"),
        ({"replicas": 8.5}, "replicas=8.5: expected a whole number"),
        ({"exact": "no"}, "exact='no': expected True or False"),
        ({"policies": pandas.DataFrame({"name": ["performance"]})}, "of a table give one column"),
    ],
)
def test_the_line_for_a_wrong_argument(short: Path, arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(wattwise.Error) as caught:
        wattwise.compare(**({"workload": short, "machine": "i7-4510u", "policies": "performance"} | arguments))  # type: ignore[arg-type]
    assert told in str(caught.value) and "\n" not in str(caught.value)


def test_the_rule_for_shares_is_the_program_s(short: Path) -> None:
    with pytest.raises(wattwise.Error) as caught:
        wattwise.compare(short, max_slowdown="10")
    assert str(caught.value).removeprefix("max_slowdown: ") in cli_line("compare", short, "--max-slowdown", "10")
    with pytest.raises(wattwise.Error, match="memory_bound: '20' is no share; expected 20% or 0.2"):
        wattwise.load("sync", memory_bound=20)


def test_an_option_that_comes_too_late_is_refused() -> None:
    work = wattwise.load("sync")
    assert wattwise.load(work) is work
    with pytest.raises(wattwise.Error, match="has been read already"):
        wattwise.load(work, memory_bound=0.2)


@pytest.mark.parametrize("name", ["empty", "empty.perf", "empty.toml", "empty.txt", "empty.zst"])
def test_an_empty_file_is_said_to_be_empty(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.touch()
    is_toml: list[Callable[[], object]] = [
        lambda: wattwise.compare("burst", "i7-4510u", file, exact=True),
        lambda: wattwise.tune("burst", space=file, trials=1),
    ]
    for call in (lambda: wattwise.load(file), lambda: wattwise.machine(file), *(is_toml if name.endswith(".toml") else [])):
        with pytest.raises(wattwise.Error) as caught:
            call()
        assert "is empty" in str(caught.value) and "empty" in str(caught.value), str(caught.value)
        assert "\n" not in str(caught.value) and "expected" in str(caught.value), str(caught.value)


def test_a_policy_of_one_s_own_speaks_numpy(short: Path) -> None:
    class Half(wattwise.SpeedPolicy):
        def cadence(self) -> wattwise.Cadence:
            return wattwise.Cadence.timer(np.float64(4e6), first_ns=np.int32(1000))

        def observe(self, now: wattwise.Observation) -> Any:
            domains = self.platform.domains
            levels = np.array([d.nearest(np.float32(0.5) * d.fastest_khz) for d in domains])
            return wattwise.Intent(levels, min_khz=pandas.Series([d.at_least(1.5) for d in domains]), next_ns=np.int64(4_000_000))

    told = wattwise.compare(short, "xeon-4210", [Half, "performance"], exact=True)
    assert {r["policy"] for r in told.to_dict()["results"]} >= {"Half", "performance"}
    for make in (wattwise.Cadence.timer, wattwise.Cadence.daemon, wattwise.Cadence.scheduler):
        for wrong in (-1, 2**64, math.nan, 0.5, "1", True, np.bool_(True), [1]):
            with pytest.raises((TypeError, ValueError)) as caught:
                make(wrong)  # type: ignore[operator]
            assert "_ns" in str(caught.value) and "whole number" in str(caught.value), str(caught.value)
