"""`tune` against the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import cli

import wattwise


def test_the_same_json_as_the_command_line_to_the_bit(short: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(short.read_text().replace('"short"', '"other"').replace("900", "1900"))
    found = wattwise.tune([short, other], "i7-4510u", space="schedutil", trials=20, replicas=40, seed=3)
    out = tmp_path / "tuned.toml"
    told = cli(
        "tune",
        short,
        other,
        "-m",
        "i7-4510u",
        "--space",
        "schedutil",
        "--budget",
        "trials=20",
        "--replicas",
        40,
        "--seed",
        3,
        "-o",
        out,
        "--json",
    )
    assert told.stdout == found.to_json() + "\n", told.stderr
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
        ({"space": "schedutil", "max_slowdown": "x"}, "--max-slowdown"),
        ({"space": "schedutil", "replicas": 1}, "--replicas 1"),
        ({"space": "schedutil", "time_s": -1.0}, "time_s"),
        ({"space": "schedutil:rate_limit=5..5"}, "rate_limit"),
    ],
)
def test_bad_arguments_are_one_line(short: Path, arguments: dict[str, object], told: str) -> None:
    with pytest.raises(wattwise.Error) as caught:
        wattwise.tune([short], "i7-4510u", trials=5, **arguments)  # type: ignore[arg-type]
    assert told in str(caught.value) and "\n" not in str(caught.value)


def test_a_space_with_no_admissible_point_says_so(short: Path) -> None:
    with pytest.raises(wattwise.Error, match="no policy of .* is within the limits"):
        wattwise.tune([short], "i7-4510u", space="schedutil", trials=5, reference="performance", max_slowdown="0%")


def test_no_workload() -> None:
    with pytest.raises(wattwise.Error, match="no workload"):
        wattwise.tune([], space="schedutil")
