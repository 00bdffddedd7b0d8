"""Machines, workloads and policies: what there is, and how one's own come in."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Union

from . import _wattwise as engine
from ._listing import Listing
from ._program import line, program, said
from ._wattwise import Error, Machine, Workload

AnyPath = Union[str, "os.PathLike[str]"]
AnyWorkload = Union[str, "os.PathLike[str]", Workload]
AnyMachine = Union[str, "os.PathLike[str]", Machine]

_ZSTD = b"\x28\xb5\x2f\xfd"


def machines() -> Listing:
    """The bundled machine models: name, kind (``model`` or ``measured``) and summary of each."""
    return Listing([dict(zip(("name", "kind", "summary"), row)) for row in engine.machine_list()])


def workloads() -> Listing:
    """The bundled workloads: name, kind (``recorded``, with ``, used in development`` where wattwise was made by it, or ``generated``) and summary of each."""
    return Listing([dict(zip(("name", "kind", "summary"), row)) for row in engine.workload_list()])


def policies() -> Listing:
    """Every policy: name, kind (``speed``, ``idle``, ``cores``, ``placement``), summary, whose rule it follows, and its parameters
    with unit, range and default."""
    return Listing(engine.policy_list(), columns=("name", "kind", "summary"))


def policy(name: str) -> dict[str, Any]:
    """One policy in full: what :func:`policies` has of it, its page as ``text``."""
    known = {entry["name"]: entry for entry in engine.policy_list()}
    if name not in known:
        engine.expand(name)  # Raises with the nearest name.
        raise Error(f"{name}: expected a policy's name; wattwise.policies() lists them")
    return known[name]


def machine(name: AnyMachine) -> Machine:
    """A machine model.

    ``name`` is a bundled model (:func:`machines`), a model's file, ``this`` for an estimate of this computer, or a capture of
    another one (``wattwise capture``). The last two are made by the bundled program.
    """
    if isinstance(name, Machine):
        return name
    given = os.fspath(name)
    if given == "this" or given.startswith("emulated:") or _is_capture(given):
        return Machine.parse(said(["machines", "show", "--file", given]), given)
    return Machine.find(given)


def _is_capture(given: str) -> bool:
    try:
        with open(given, "rb") as file:
            return file.read(4) == _ZSTD
    except OSError:
        return False


def load(
    path_or_name: AnyWorkload,
    *,
    foreground: Sequence[str] = (),
    only_foreground: bool = False,
    recorded_khz: int | None = None,
    memory_bound: float | None = None,
    budget: str = "",
) -> Workload:
    """A workload: a bundled one (:func:`workloads`), a workload file, or a recording (perf.data, trace.dat, ftrace text).

    :param foreground: the tasks that are the work, by name or process id, with all that they start
    :param only_foreground: leave out what other programs did while the recording was made
    :param recorded_khz: clock at which the recording was made, in kHz, where it does not say
    :param memory_bound: share of recorded run time that does not scale with the clock, 0 to 1
    :param budget: the most that reading may take, such as ``tasks=1e6,events=1e10``
    """
    if isinstance(path_or_name, Workload):
        return path_or_name
    given = os.fspath(path_or_name)
    return Workload.find(given, list(foreground), only_foreground, recorded_khz, memory_bound, budget)


def record(
    command: str | Sequence[str],
    *,
    output: AnyPath | None = None,
    foreground: Sequence[str] = (),
    only_foreground: bool = False,
) -> Workload:
    """Runs a command, records what the scheduler does meanwhile, and loads that.

    The bundled program records (``wattwise record``); it needs the kernel's permission, and says what is missing.

    :param command: a list of arguments, or a line as a shell takes it, without the shell's own words
    :param output: where the recording is kept; by default it is not
    """
    words = shlex.split(command) if isinstance(command, str) else list(command)
    if not words:
        raise Error("record: no command; expected one")
    with tempfile.TemporaryDirectory(prefix="wattwise-") as folder:
        file = Path(folder) / "recording.perf" if output is None else Path(output)
        done = subprocess.run(
            [program(), "record", "-o", str(file), "--", *words], stderr=subprocess.PIPE, text=True, check=False
        )
        if done.returncode != 0:
            raise Error(line(done.stderr, done.returncode))
        workload = load(file, foreground=foreground, only_foreground=only_foreground)
        name = shlex.join(words)
        return workload.renamed(name, f"recorded just now: {name}")


def machine_for(workload: Workload, given: AnyMachine | None) -> Machine:
    """The machine that is named; else that of the recording, or this one where it was made here."""
    if given is not None:
        return machine(given)
    try:
        return engine.default_machine(workload)
    except Error:
        if workload.source.startswith("recorded just now: "):
            return machine("this")
        raise
