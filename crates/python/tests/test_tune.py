"""`tune` against the command line."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from conftest import cli, cli_line

import wattwise


def test_the_same_json_as_the_command_line_to_the_bit(short: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(short.read_text().replace('"short"', '"other"').replace("900", "1900"))
    out = tmp_path / "tuned.toml"
    # With a second work to test on nothing is found that is worth it, and no file is written; without one nobody knows.
    for works, worth_it in (([short, other], False), ([short], None)):
        found = wattwise.tune(works, "i7-4510u", space="schedutil", trials=20, replicas=40, seed=3)
        told = cli(
            *("tune", *works, "-m", "i7-4510u", "--space", "schedutil", "--budget", "trials=20"),
            *("--replicas", 40, "--seed", 3, "-o", out, "--json"),
        )
        assert told.stdout == found.to_json() + "\n", told.stderr
        assert found.worth_it is worth_it, found.verdict
        assert out.exists() is (worth_it is None), told.stderr
    assert found.file == out.read_text()
    assert found.policy.startswith("schedutil") and found.front and found.verdict
    assert found.policy in found._repr_html_() or found.front[0]["policy"] in found._repr_html_()
    out.write_text(found.file)
    again = wattwise.compare(short, "i7-4510u", str(out), exact=True)
    assert found.policy in {r["policy"] for r in again.to_dict()["results"]}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"space": "shedutil"}, "schedutil"),
        ({"space": "schedutil", "max_slowdown": "x"}, "max_slowdown"),
        ({"space": "schedutil", "replicas": 1}, "replicas=1"),
        ({"space": "schedutil", "trials": 0}, "trials=0"),
        ({"space": "schedutil", "max_p99": 50}, "max_p99: '50' is no share; expected 50%"),
        ({"space": "schedutil", "time_s": -1.0}, "time_s"),
        ({"space": "schedutil:rate_limit=5..5"}, "rate_limit"),
    ],
)
def test_bad_arguments_are_one_line(short: Path, arguments: dict[str, object], told: str) -> None:
    with pytest.raises(wattwise.Error) as caught:
        wattwise.tune([short], "i7-4510u", **({"trials": 5} | arguments))  # type: ignore[arg-type]
    assert told in str(caught.value) and "\n" not in str(caught.value)


def test_a_space_with_no_admissible_point_says_so(short: Path) -> None:
    with pytest.raises(wattwise.Error, match="no policy of .* is within the limits"):
        wattwise.tune([short], "i7-4510u", space="schedutil", trials=5, reference="performance", max_slowdown="0%")


def test_a_recording_is_on_one_side(short: Path, tmp_path: Path) -> None:
    """By name and by content: as the program says it."""
    for works, test, told in (
        (["build", "burst", "tbench"], ["burst"], "--test burst: named twice"),
        ([short, short], [], "WORKLOAD .*short.toml: named twice"),
        (["burst", "tbench"], [wattwise.load("tbench")], "--test tbench: named twice"),
    ):
        with pytest.raises(wattwise.Error, match=told):
            wattwise.tune(works, "i7-4510u", space="burst", test=test, trials=1)
    copy = tmp_path / "copy.toml"
    copy.write_text(short.read_text().replace('"short"', '"other"') + "# another file\n")
    with pytest.raises(wattwise.Error, match=r"--test .*copy.toml: has the same work in it as .*short.toml") as caught:
        wattwise.tune(short, "i7-4510u", space="burst", test=copy, trials=1)
    assert cli_line("tune", short, "--test", copy, "-m", "i7-4510u", "--space", "burst").endswith(str(caught.value))
    # The same recording, looked at in another way, under another name.
    bundled = Path(__file__).parents[3] / "workloads" / "sync.perf.zst"
    if bundled.exists():
        work = wattwise.load(bundled, foreground="rsync", only_foreground=True, memory_bound="20%")
        with pytest.raises(wattwise.Error, match="has the same work in it as sync"):
            wattwise.tune("sync", space="burst", test=[work], trials=1)


def test_what_is_not_worth_it_has_no_line_to_apply_it(short: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(short.read_text().replace("900", "1900"))
    found = wattwise.tune(
        [short, other], "i7-4510u", space="ondemand:rate=10.001..10.05ms,cost=0", reference="ondemand:rate=10ms,cost=0", trials=4
    )
    assert found.worth_it is False and found.apply is None, found.verdict
    assert "not worth it" in found.to_dict()["winner"]["why_not"]
    untested = wattwise.tune(short, "i7-4510u", space="schedutil", trials=4, replicas=40)
    assert untested.worth_it is None and untested.apply == untested.to_dict()["winner"]["apply"]


def test_no_workload() -> None:
    with pytest.raises(wattwise.Error, match="no workload"):
        wattwise.tune([], space="schedutil")


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_it(short: Path) -> None:
    def press() -> None:
        time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(KeyboardInterrupt, match=r"^stopped after \d+ of 1000000 trials$"):
        wattwise.tune(["build", "tbench", short], "i7-4510u", space="burst", trials=1_000_000)
    presser.join()
