"""The stubs say what is there, and what a caller writes passes mypy's strict rules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import wattwise
from wattwise import _wattwise as engine

CALLER = """
import wattwise


class Half(wattwise.SpeedPolicy):
    def observe(self, now: wattwise.Observation) -> list[int | None]:
        return [domain.at_least(domain.fastest_khz // 2) for domain in self.platform.domains]


answer = wattwise.compare("build", policies=["schedutil", Half], max_slowdown=0.03)
text: str = answer.recommended
rows: wattwise.Sweep = wattwise.sweep(["build"], ["xeon-4210"], "schedutil", out="x.arrow")
names: list[str] = wattwise.machines().names
cpus: int = wattwise.machine("this").cpus
one: wattwise.Machine = wattwise.machine(wattwise.machines()[0])
wattwise.sweep(iter(["build"]), machines=wattwise.machines(), policies={"schedutil"}, client="tcp://host:8786")
"""


def mypy(*arguments: object) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mypy")
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_the_package_passes_strict_rules(tmp_path: Path) -> None:
    done = mypy("--cache-dir", tmp_path / "cache", "--ignore-missing-imports", "-p", "wattwise")
    assert done.returncode == 0, done.stdout


def test_a_caller_passes_strict_rules(tmp_path: Path) -> None:
    file = tmp_path / "caller.py"
    file.write_text(CALLER)
    assert (done := mypy("--cache-dir", tmp_path / "cache", file)).returncode == 0, done.stdout
    file.write_text(CALLER.replace("answer.recommended", "answer.recommend"))
    assert 'has no attribute "recommend"' in mypy("--cache-dir", tmp_path / "cache", file).stdout


def test_the_stubs_name_what_the_module_has() -> None:
    stub = (Path(wattwise.__file__).parent / "_wattwise.pyi").read_text()
    for name in dir(engine):
        if name.startswith("__"):
            continue
        assert f"class {name}" in stub or f"def {name}(" in stub or f"\n{name}: " in stub, name
        value = getattr(engine, name)
        if isinstance(value, type) and value.__module__ == "wattwise" and not issubclass(value, BaseException):
            for member in vars(value):
                if not member.startswith("_"):
                    assert f"def {member}(" in stub, f"{name}.{member}"


def test_everything_public_has_a_docstring() -> None:
    for name in wattwise.__all__:
        value = getattr(wattwise, name)
        if callable(value):
            assert value.__doc__, name
