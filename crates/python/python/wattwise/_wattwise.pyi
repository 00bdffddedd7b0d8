"""What the engine does for Python. People use the package's own names; these are under them."""

from collections.abc import Callable, Sequence
from typing import Any, final

__version__: str
REPLICAS: int
LEAST_TEST_REPLICAS: int

class Error(ValueError):
    """What cannot be done, in one line: which file or argument, what was expected, what to do."""

@final
class Machine:
    """A machine model."""

    @staticmethod
    def find(given: str) -> Machine: ...
    @staticmethod
    def parse(text: str, given: str) -> Machine: ...
    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def cpus(self) -> int:
        """Logical CPUs."""
    @property
    def text(self) -> str:
        """The model's file."""
    @property
    def levels_khz(self) -> list[list[int]]:
        """Speeds of each kind of core, in kHz, the highest first."""

@final
class Workload:
    """A workload: a recording, or a generated one."""

    @staticmethod
    def find(
        given: str,
        foreground: list[str],
        only_foreground: bool,
        recorded_khz: int | None,
        memory_bound: float | None,
        budget: str,
    ) -> Workload: ...
    @staticmethod
    def from_bytes(
        name: str,
        data: bytes,
        foreground: list[str],
        only_foreground: bool,
        recorded_khz: int | None,
        memory_bound: float | None,
        budget: str,
    ) -> Workload: ...
    def renamed(self, name: str, source: str) -> Workload: ...
    def data(self) -> bytes | None: ...
    @property
    def given(self) -> str: ...
    @property
    def asked(self) -> tuple[list[str], bool, int | None, float | None, str]: ...
    @property
    def bundled(self) -> str | None: ...
    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str:
        """Where it comes from, in words."""
    @property
    def cpus(self) -> int:
        """CPUs of the machine it was recorded on; 0 for generated work."""
    @property
    def duration_s(self) -> float:
        """Its recorded or generated length, in s."""
    @property
    def events(self) -> int:
        """Trace events; 0 for generated work."""
    @property
    def tasks(self) -> int: ...
    @property
    def warnings(self) -> list[str]:
        """What could not be used or had to be assumed, a sentence each."""

@final
class Table:
    """An Arrow table: pandas, polars, pyarrow and duckdb take it as it is."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    @property
    def columns(self) -> list[str]: ...

@final
class Compared:
    def json(self) -> str: ...
    def table(self) -> Table: ...

@final
class Plan:
    def __new__(
        cls,
        workloads: list[Workload],
        machines: list[Machine],
        policies: list[str],
        *,
        reference: str | None,
        goal: str,
        max_slowdown: float | None,
        replicas: int,
        seed: int,
        budget_text: str,
    ) -> Plan: ...
    def __len__(self) -> int: ...
    def pairs(self) -> list[tuple[int, int, int]]: ...
    @property
    def policies(self) -> list[str]: ...
    def run(self, first: int, last: int) -> bytes: ...
    def start(self, blocks: list[tuple[int, int]], threads: int) -> Running: ...

@final
class Running:
    def next(self) -> tuple[tuple[int, bytes] | None, int] | None: ...
    def stop(self) -> None: ...

@final
class Cadence:
    """When a policy wants to be asked. Times are in ns."""

    @staticmethod
    def once() -> Cadence:
        """Once at the start, never again."""
    @staticmethod
    def daemon(period_ns: int, first_ns: int | None = None) -> Cadence:
        """By a process that sleeps in between: each poll wakes a CPU and is scheduled as a task."""
    @staticmethod
    def timer(period_ns: int, first_ns: int | None = None) -> Cadence:
        """By a timer of the kernel, which wakes a CPU."""
    @staticmethod
    def tick() -> Cadence:
        """At every tick of every CPU that has one; the observation's scope is that CPU."""
    @staticmethod
    def scheduler(interval_ns: int = 0) -> Cadence:
        """From the scheduler's hook, with at least this time between two looks at a domain; 0: at every hook, of one CPU."""

@final
class Domain:
    """CPUs that share one clock, and the speeds of that clock, in kHz."""

    @property
    def cpus(self) -> list[int]: ...
    @property
    def levels_khz(self) -> list[int]:
        """Offered speeds, the highest first."""
    @property
    def transition_ns(self) -> int:
        """What the driver states for one change of speed; 0: unknown."""
    @property
    def transition_delay_ns(self) -> int:
        """Least time that a kernel governor leaves between two changes."""
    @property
    def base_khz(self) -> int:
        """The highest speed without boost."""
    @property
    def load_full_khz(self) -> int:
        """The speed at which the scheduler counts a busy CPU as fully loaded."""
    @property
    def fastest_khz(self) -> int: ...
    @property
    def slowest_khz(self) -> int: ...
    @property
    def capacity(self) -> int:
        """Work a CPU here does at its highest speed, where the machine's strongest CPU does 1024."""
    def at_least(self, khz: int) -> int:
        """The slowest level that is at least `khz`; the highest where none is."""
    def at_most(self, khz: int) -> int:
        """The fastest level that is at most `khz`; the lowest where none is."""
    def nearest(self, khz: int) -> int:
        """The level nearest to `khz`; of two equally near the faster."""

@final
class Platform:
    """What a policy may know of a machine before it runs."""

    @property
    def domains(self) -> tuple[Domain, ...]: ...
    @property
    def cpus(self) -> int:
        """Number of logical CPUs."""
    @property
    def tick_ns(self) -> int:
        """Period of the scheduler's tick."""
    @property
    def load_invariant(self) -> bool:
        """Whether the scheduler's load counts work, whatever the speed."""
    @property
    def boost(self) -> bool: ...

@final
class CpuSample:
    """One CPU since it was last in an observation. Times are in ns."""

    @property
    def busy_ns(self) -> int: ...
    @property
    def idle_ns(self) -> int: ...
    @property
    def iowait_ns(self) -> int: ...
    @property
    def runnable(self) -> int:
        """Tasks running or ready to run now."""
    @property
    def io_wake(self) -> bool: ...
    @property
    def tickless(self) -> bool: ...
    @property
    def task_util(self) -> int:
        """What the scheduler expects of the tasks that are running or ready here, of 1024."""
    @property
    def moved_util(self) -> int: ...
    @property
    def load(self) -> float:
        """Busy share of the sample, 0 to 1; 0 of an empty one."""

@final
class DomainSample:
    """A frequency domain as it stands, in kHz."""

    @property
    def khz(self) -> int:
        """The speed in force."""
    @property
    def min_khz(self) -> int: ...
    @property
    def max_khz(self) -> int: ...

@final
class Observation:
    """What a policy sees."""

    @property
    def now_ns(self) -> int:
        """The scheduler's clock; it never goes back."""
    @property
    def asks(self) -> bool:
        """Whether a decision is asked for; if not, it is only told what ran."""
    @property
    def scope(self) -> str:
        """Which samples are new: `all`, those of one `cpu`, or those of one `domain`. The others must not be read."""
    @property
    def number(self) -> int | None:
        """Which CPU or domain."""
    @property
    def cpus(self) -> tuple[CpuSample, ...]: ...
    @property
    def domains(self) -> tuple[DomainSample, ...]: ...
    @property
    def power(self) -> str:
        """`unknown`, `mains` or `battery`."""
    @property
    def temperature_c(self) -> float | None: ...

@final
class Intent:
    """What is wanted, where one speed does not say it. Speeds are in kHz, one or a list by domain."""

    def __new__(
        cls,
        khz: object = None,
        *,
        min_khz: object = None,
        max_khz: object = None,
        next_ns: int | None = None,
    ) -> Intent: ...
    @property
    def khz(self) -> Any: ...
    @property
    def min_khz(self) -> Any: ...
    @property
    def max_khz(self) -> Any: ...
    @property
    def next_ns(self) -> int | None: ...

def default_machine(workload: Workload) -> Machine: ...
def machine_list() -> list[tuple[str, str, str]]: ...
def workload_list() -> list[tuple[str, str, str]]: ...
def policy_list() -> list[dict[str, Any]]: ...
def expand(text: str) -> list[str]: ...
def share(name: str, text: str) -> float: ...
def increase(name: str, text: str) -> float: ...
def one_line(text: str) -> str: ...
def ipc_rows(data: bytes) -> int: ...
def read_ipc(paths: Sequence[str]) -> Table: ...
def compare(
    workload: Workload,
    machine: Machine,
    policies_asked: list[Any],
    *,
    system: str | None,
    reference: str | None,
    goal: str,
    max_slowdown: float | None,
    replicas: int,
    seed: int,
    power: str,
    latency_limit_us: float | None,
    budget_text: str,
    call_limit_s: float,
    progress: Callable[[int, int], None] | None,
) -> Compared: ...
def tune(
    workloads: list[Workload],
    tests: int,
    machines: list[Machine],
    space: str,
    *,
    trials: int | None,
    time_s: float | None,
    reference: str | None,
    goal: str,
    max_slowdown: float | None,
    max_p99: float | None,
    replicas: int,
    seed: int,
    budget_text: str,
    progress: Callable[[int, int], None] | None,
) -> str: ...
