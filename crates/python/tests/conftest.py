"""What the tests share."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import wattwise

SHORT = """name = "short"
summary = "two tasks with five short bursts each"
reference_khz = 2_000_000

[[task]]
name = "burst"
role = "foreground"
count = 2
rounds = 5
steps = [{ run_us = [200, 900] }, { sleep_us = [300, 1500] }]
"""

ENDLESS = """name = "endless"
summary = "a task whose work is long"
reference_khz = 2_000_000

[[task]]
name = "job"
role = "foreground"
rounds = 2_000_000
steps = [{ run_us = 100 }, { sleep_us = 100 }]
"""


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs that nobody named go where the tests' other files go."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """A workload of which a case takes some ten microseconds."""
    file = tmp_path / "short.toml"
    file.write_text(SHORT)
    return file


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A workload that no budget of 10^5 events is enough for."""
    file = tmp_path / "endless.toml"
    file.write_text(ENDLESS)
    return file


def cli(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The wheel's own program."""
    return subprocess.run([wattwise.program(), *map(str, arguments)], capture_output=True, text=True, check=False)


def cli_line(*arguments: object) -> str:
    """The one line with which the program fails."""
    done = cli(*arguments)
    assert done.returncode != 0, done.stdout
    return done.stderr.strip().splitlines()[-1]


def rows(table: object) -> list[dict[str, object]]:
    """An Arrow table's rows, to be compared to the bit."""
    pyarrow = pytest.importorskip("pyarrow")
    out: list[dict[str, object]] = pyarrow.table(table).to_pylist()
    return out


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C is Python's, also where a shell that runs the tests in the background has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
