"""Machines, workloads and policies: what there is, and how one's own come in."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Union

from . import _arguments as arguments
from . import _wattwise as engine
from ._arguments import Share, refused
from ._listing import Named
from ._program import line, program, said
from ._wattwise import Error, Machine, Workload

AnyPath = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Entry = Mapping[str, Any]
"""What :func:`machines`, :func:`workloads` and :func:`policies` have of one thing."""
AnyWorkload = Union[AnyPath, Entry, Workload]
AnyMachine = Union[AnyPath, Entry, Machine]

_ZSTD = b"\x28\xb5\x2f\xfd"


def machines() -> Named:
    """The bundled machine models: name, kind (``model`` or ``measured``) and summary of each."""
    return Named([dict(zip(("name", "kind", "summary"), row)) for row in engine.machine_list()])


def workloads() -> Named:
    """The bundled workloads: name, kind (``recorded``, with ``, used in development`` where wattwise was made by it, or ``generated``) and summary of each."""
    return Named([dict(zip(("name", "kind", "summary"), row)) for row in engine.workload_list()])


def policies() -> Named:
    """Every policy: name, kind (``speed``, ``idle``, ``cores``, ``dram``, ``placement``), summary, whose rule it follows, and its parameters
    with unit, range and default."""
    return Named(engine.policy_list(), columns=("name", "kind", "summary"))


def policy(name: str | Entry) -> dict[str, Any]:
    """One policy in full: what :func:`policies` has of it, its page as ``text``."""
    name = arguments.path(name, "name", "a policy's name, as wattwise.policies() has it")
    known = {entry["name"]: entry for entry in engine.policy_list()}
    if name not in known:
        engine.expand(name)  # Raises with the nearest name.
        raise refused(f"{name}: expected a policy's name; wattwise.policies() lists them")
    return known[name]


def machine(name: AnyMachine) -> Machine:
    """A machine model.

    ``name`` is a bundled model (:func:`machines`), a model's file, ``this`` for an estimate of this computer, a capture of
    another one (``wattwise capture``), a tree of its files, or ``emulated:NAME``. All but the first two are made by the bundled program.
    """
    if isinstance(name, Machine):
        return name
    given = arguments.path(name, "machine", "a bundled machine's name, a file, 'this' or a wattwise.Machine")
    if given == "this" or given.startswith("emulated:") or os.path.isdir(given) or _is_capture(given):
        return Machine.parse(said(["machines", "show", "--file", given]), given)
    return Machine.find(given)


def _is_capture(given: str) -> bool:
    try:
        with open(given, "rb") as file:
            return file.read(4) == _ZSTD
    except (OSError, ValueError):
        return False


def load(
    path_or_name: AnyWorkload,
    *,
    foreground: str | int | Iterable[str | int] = (),
    only_foreground: bool = False,
    recorded_khz: int | None = None,
    memory_bound: Share = None,
    budget: str = "",
) -> Workload:
    """A workload: a bundled one (:func:`workloads`), a workload file, or a recording (perf.data, trace.dat, ftrace text).

    :param foreground: the tasks that are the work, by name or process id, with all that they start
    :param only_foreground: leave out what other programs did while the recording was made
    :param recorded_khz: clock at which the recording was made, in kHz, where it does not say
    :param memory_bound: share of recorded run time that does not scale with the clock: ``"20%"`` or ``0.2``
    :param budget: the most that reading may take, such as ``tasks=1e6,events=1e10``
    """
    asked = (
        [_task(one) for one in arguments.several(foreground, "foreground", "names or process ids of tasks")],
        arguments.flag(only_foreground, "only_foreground"),
        None if recorded_khz is None else arguments.whole(recorded_khz, "recorded_khz", 1_000, 100_000_000, " kHz"),
        None if memory_bound is None else arguments.share(memory_bound, "memory_bound"),
        arguments.text(budget, "budget", "text such as tasks=1e6,events=1e10"),
    )
    if isinstance(path_or_name, Workload):
        if asked != ([], False, None, None, ""):
            raise refused("load: a wattwise.Workload has been read already; give its name or file to read it in another way")
        return path_or_name
    expected = "a bundled workload's name, a file or a wattwise.Workload"
    return Workload.find(arguments.path(path_or_name, "workload", expected), *asked)


def _task(given: object) -> str:
    if isinstance(given, str):
        return arguments.text(given, "foreground")
    return str(arguments.whole(given, "foreground", 0, 2**31 - 1, ", or a task's name"))


def record(
    command: str | Iterable[AnyPath],
    *,
    output: AnyPath | None = None,
    foreground: str | int | Iterable[str | int] = (),
    only_foreground: bool = False,
) -> Workload:
    """Runs a command, records what the scheduler does meanwhile, and loads that.

    The bundled program records (``wattwise record``); it needs the kernel's permission, and says what is missing.

    :param command: a list of arguments, or a line as a shell takes it, without the shell's own words
    :param output: where the recording is kept; by default it is not
    """
    words = _words(command)
    if not words:
        raise refused("command: is empty; expected one")
    kept = None if output is None else arguments.path(output, "output", "a file")
    with tempfile.TemporaryDirectory(prefix="wattwise-") as folder:
        file = Path(folder) / "recording.perf" if kept is None else Path(kept)
        done = subprocess.run(
            [program(), "record", "-o", str(file), "--", *words], stderr=subprocess.PIPE, text=True, check=False
        )
        if done.returncode != 0:
            raise refused(line(done.stderr, done.returncode))
        workload = load(file, foreground=foreground, only_foreground=only_foreground)
        name = shlex.join(words)
        return workload.renamed(name, f"recorded just now: {name}")


def _words(command: object) -> list[str]:
    expected = "a line as a shell takes it, or a list of arguments"
    if not isinstance(command, str):
        return [arguments.path(one, "command", expected) for one in arguments.several(command, "command", expected)]
    try:
        return shlex.split(arguments.text(command, "command"))
    except Error:
        raise
    except ValueError as e:
        raise arguments.wrong("command", command, f"{expected} ({e})") from None


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
