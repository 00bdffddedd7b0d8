"""What docs/python.md tells people to write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import wattwise

PAGE = (Path(__file__).parents[3] / "docs" / "python.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def block(word: str) -> str:
    (found,) = [text for text in BLOCKS if word in text]
    return found


def test_the_ten_lines_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("altair")
    monkeypatch.chdir(tmp_path)
    exec(block("answer.plot()"), {})
    assert (tmp_path / "answer.html").stat().st_size > 1000
    assert (tmp_path / "sweep.html").stat().st_size > 1000
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    exec(block("pandas.read_parquet").replace("duckdb", "# duckdb"), {"pandas": pandas, "polars": polars})


def test_the_policy_of_ones_own_runs() -> None:
    exec(block("class MyOndemand"), {"wattwise": wattwise})


def test_every_call_of_the_table_exists() -> None:
    table = "".join(line for line in PAGE.splitlines(True) if line.startswith("| `"))
    for name in re.findall(r"`(\w+)\(", table):
        assert hasattr(wattwise, name) or hasattr(wattwise.SpeedPolicy, name), name
