"""`compare` against the command line, its tables and its errors."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from conftest import cli, cli_line, rows

import wattwise


@pytest.mark.parametrize(
    ("workload", "arguments", "options"),
    [
        (
            "build",
            {"policies": ["schedutil", "schedutil:rate_limit=1ms..20ms:n3"]},
            ["-p", "schedutil", "-p", "schedutil:rate_limit=1ms..20ms:n3"],
        ),
        (
            "tbench",
            {"machine": "xeon-4210", "max_slowdown": "3%", "goal": "edp"},
            ["-m", "xeon-4210", "--max-slowdown", "3%", "--best", "edp"],
        ),
        (
            "burst",
            {"machine": "thinkpad-r51", "exact": True, "max_slowdown": "any"},
            ["-m", "thinkpad-r51", "--exact", "--max-slowdown", "any"],
        ),
        (
            "cyclictest",
            {"memory_bound": 0.2, "reference": "performance"},
            ["--memory-bound", "20%", "--reference", "performance"],
        ),
    ],
)
def test_the_same_json_as_the_command_line_to_the_bit(workload: str, arguments: dict[str, object], options: list[str]) -> None:
    loaded = wattwise.load(workload, memory_bound=arguments.pop("memory_bound", None))  # type: ignore[arg-type]
    replicas = [] if "exact" in arguments else ["--replicas", "8"]
    told = wattwise.compare(loaded, **({"replicas": 8} | arguments))  # type: ignore[arg-type]
    assert told.to_json() + "\n" == cli("compare", workload, *options, *replicas, "--json").stdout


def test_a_seed_has_its_own_draws(short: Path) -> None:
    def energies(seed: int) -> list[float]:
        told = wattwise.compare(short, policies=["schedutil", "powersave"], replicas=8, seed=seed)
        return [r["uncertain"]["energy_j"]["median"] for r in told.to_dict()["results"]]

    assert energies(1) == energies(1)
    assert energies(1) != energies(0)


def test_what_it_says(short: Path) -> None:
    told = wattwise.compare(short, "i7-4510u", ["performance", "powersave"], replicas=8, reference="performance")
    data = json.loads(told.to_json())
    assert told.answer == str(told) == data["answer"]["text"]
    assert told.recommended in ("performance", "powersave")
    assert told.reference == "performance" and told.machine == "i7-4510u" and told.workload == "short"
    assert told.winner in (None, "performance", "powersave") and isinstance(told.tied, list)
    shown = told._repr_html_()
    assert "<svg" in shown and "powersave" in shown and told.answer.split(".")[0] in shown


def test_a_stranger_s_name_is_no_markup(short: Path) -> None:
    hostile = short.with_name("x.toml")
    hostile.write_text(short.read_text().replace('name = "short"', 'name = "<script>alert(1)</script>"'))
    assert "<script>" not in wattwise.compare(hostile, "i7-4510u", "performance", exact=True)._repr_html_()


def test_tables_are_taken_by_pandas_polars_and_pyarrow(short: Path) -> None:
    told = wattwise.compare(short, "i7-4510u", ["performance", "powersave"], replicas=8)
    results = told.to_dict()["results"]
    expected = {r["policy"]: (r["energy_j"], r["wake_latency_us"]["p99"], r["tied"], r["transitions"]) for r in results}

    def same(entries: list[dict[str, object]]) -> None:
        assert {e["policy"]: (e["energy_j"], e["wake_p99_us"], e["tied"], e["transitions"]) for e in entries} == expected

    same(rows(told))
    polars = pytest.importorskip("polars")
    same(polars.DataFrame(told.table).to_dicts())
    pandas = pytest.importorskip("pandas")
    if hasattr(pandas.DataFrame, "from_arrow"):
        same(pandas.DataFrame.from_arrow(told.table).to_dict("records"))
    else:
        same(pandas.api.interchange.from_dataframe(__import__("pyarrow").table(told)).to_dict("records"))


def test_a_table_can_be_taken_twice(short: Path) -> None:
    table = wattwise.compare(short, "i7-4510u", "performance", exact=True).table
    assert rows(table) == rows(table)


@pytest.mark.parametrize(
    ("call", "options"),
    [
        (lambda: wattwise.load("bild"), ["compare", "bild"]),
        (lambda: wattwise.machine("xeon"), ["compare", "burst", "-m", "xeon"]),
        (lambda: wattwise.compare("burst", policies="shedutil"), ["compare", "burst", "-p", "shedutil"]),
        (lambda: wattwise.compare("burst", policies="schedutil:rate=1"), ["compare", "burst", "-p", "schedutil:rate=1"]),
        (
            lambda: wattwise.compare("burst", policies="schedutil:rate_limit=1ms..:n5"),
            ["compare", "burst", "-p", "schedutil:rate_limit=1ms..:n5"],
        ),
        (lambda: wattwise.compare("burst", policies="schedutil+cmax=C99"), ["compare", "burst", "-p", "schedutil+cmax=C99"]),
        (lambda: wattwise.compare("burst", reference="shedutil"), ["compare", "burst", "--reference", "shedutil"]),
        (lambda: wattwise.load("/dev/null"), ["compare", "/dev/null"]),
        (lambda: wattwise.load("/"), ["compare", "/"]),
    ],
)
def test_errors_are_the_command_line_s_one_line(call: object, options: list[str]) -> None:
    with pytest.raises(wattwise.Error) as caught:
        call()  # type: ignore[operator]
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)
    assert cli_line(*options).endswith(str(caught.value))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"policies": []}, "empty list"),
        ({"policies": [3]}, "policies=3: expected"),
        ({"goal": "enrgy"}, "did you mean 'energy'?"),
        ({"max_slowdown": "-3%"}, "max_slowdown: '-3%' is no share; expected"),
        ({"max_slowdown": float("nan")}, "max_slowdown=nan: expected a share"),
        ({"replicas": 3}, "8 to 4096"),
        ({"power": "sun"}, "mains"),
        ({"system": "beos"}, "linux"),
        ({"budget": "events=x"}, "--budget"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_bad_arguments_are_one_line(arguments: dict[str, object], told: str) -> None:
    with pytest.raises(wattwise.Error, match=".") as caught:
        wattwise.compare("burst", "i7-4510u", **arguments)  # type: ignore[arg-type]
    assert told in str(caught.value) and "\n" not in str(caught.value)


def test_work_that_does_not_end_is_an_error(endless: Path) -> None:
    with pytest.raises(wattwise.Error, match="events"):
        wattwise.compare(endless, "i7-4510u", "performance", exact=True, budget="events=100000")


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_it(endless: Path) -> None:
    def press() -> None:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    since = time.monotonic()
    with pytest.raises(KeyboardInterrupt, match=r"^stopped after \d+ of 8194 runs$"):
        wattwise.compare(endless, "i7-4510u", ["performance", "powersave"], replicas=4096)
    assert time.monotonic() - since < 10
    presser.join()


def test_other_threads_of_python_run_meanwhile(endless: Path) -> None:
    turns, over = 0, threading.Event()

    def count() -> None:
        nonlocal turns
        while not over.wait(0.01):
            turns += 1

    counter = threading.Thread(target=count)
    counter.start()
    before = time.monotonic()
    with pytest.raises(wattwise.Error):
        wattwise.compare(endless, "i7-4510u", "performance", exact=True, budget="events=3000000")
    taken = time.monotonic() - before
    over.set()
    counter.join()
    # Had the engine held Python's lock, there would be none.
    assert turns >= min(5, taken / 0.1)


def test_lists_and_pages() -> None:
    assert "xeon-4210" in wattwise.machines().names
    assert "build" in wattwise.workloads().names
    kinds = {entry["kind"] for entry in wattwise.policies()}
    assert kinds == {"speed", "idle", "cores", "dram", "placement"}
    page = wattwise.policy("ondemand")
    assert (
        page["params"][0]
        == {
            "name": "up",
            "help": page["params"][0]["help"],
            "expected": page["params"][0]["expected"],
            "unit": "%",
            "range": (0.0, 100.0),
            "default": 95.0,
        }
        or page["params"][0]["unit"] == "%"
    )
    assert "Linux 6.12" in page["text"]
    with pytest.raises(wattwise.Error, match="did you mean 'ondemand'"):
        wattwise.policy("ondeman")
    assert "<table>" in wattwise.machines()._repr_html_()


def test_plots_where_altair_is_installed(short: Path) -> None:
    pytest.importorskip("altair")
    chart = wattwise.compare(short, "i7-4510u", ["performance", "powersave"], replicas=8).plot().to_dict()
    assert (
        {row["policy"] for row in chart["data"]["values"]} >= {"performance", "powersave"}
        if "values" in chart.get("data", {})
        else chart["layer"]
    )
