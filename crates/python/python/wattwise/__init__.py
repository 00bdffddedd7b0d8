"""wattwise: the power policy under which a computer does its work on the least energy.

>>> import wattwise
>>> answer = wattwise.compare("build", policies=["schedutil", "performance"])  # doctest: +SKIP
>>> print(answer.recommended)  # doctest: +SKIP

Units are in the names: ``_s`` seconds, ``_us`` microseconds, ``_ns`` nanoseconds, ``_j`` joules, ``_w`` watts, ``_khz`` kHz.
What cannot be done raises :class:`Error` with one line.
"""

from ._compare import Comparison, compare
from ._inputs import load, machine, machines, policies, policy, record, workloads
from ._policy import SpeedPolicy
from ._program import program
from ._sweep import Sweep, sweep
from ._tune import Tuned, tune
from ._wattwise import (
    Cadence,
    CpuSample,
    Domain,
    DomainSample,
    Error,
    Intent,
    Machine,
    Observation,
    Platform,
    Table,
    Workload,
    __version__,
)

__all__ = [
    "Cadence",
    "Comparison",
    "CpuSample",
    "Domain",
    "DomainSample",
    "Error",
    "Intent",
    "Machine",
    "Observation",
    "Platform",
    "SpeedPolicy",
    "Sweep",
    "Table",
    "Tuned",
    "Workload",
    "__version__",
    "compare",
    "load",
    "machine",
    "machines",
    "policies",
    "policy",
    "program",
    "record",
    "sweep",
    "tune",
    "workloads",
]
