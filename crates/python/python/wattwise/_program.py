"""The program `wattwise` that the wheel brings along: what needs a machine, and not its model, is its work."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ._arguments import refused


def program() -> Path:
    """The program `wattwise`: the one in this package's wheel, else the one on the search path."""
    try:
        files = importlib.metadata.distribution("wattwise").files or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "wattwise" and file.parent.name == "bin":
            path = Path(str(file.locate())).resolve()
            if os.access(path, os.X_OK):
                return path
    found = shutil.which("wattwise")
    if found is None:
        raise refused("the program 'wattwise' is neither in this package nor on the search path; install the wheel that has it")
    return Path(found)


def said(arguments: Sequence[str]) -> str:
    """What the program prints; its one line as an error where it fails."""
    done = subprocess.run([program(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise refused(line(done.stderr, done.returncode))
    return done.stdout


def line(stderr: str, code: int) -> str:
    """The line that says why the program ended so."""
    lines = [text for text in stderr.splitlines() if text.strip()]
    if not lines:
        return f"wattwise ended with exit code {code}"
    return lines[-1].removeprefix("wattwise: ").removeprefix("error: ")
