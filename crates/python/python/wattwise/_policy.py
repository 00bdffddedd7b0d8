"""Speed policies written in Python: for teaching and for ideas. Slow, but run by the same engine as those in Rust."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

from ._wattwise import Cadence, Intent, Observation, Platform

Speeds = Union[None, int, float, Sequence[Union[None, int, float]], Intent]


class SpeedPolicy:
    """Which speed each frequency domain should run at: the counterpart of the trait ``SpeedPolicy`` in Rust.

    A class is given to :func:`wattwise.compare` beside the names of others. An instance is made for each run, so what one run
    learns no other knows. The answer of :meth:`start` and :meth:`observe` is one speed in kHz for the domains that the
    observation is about, a list with one (or None) for each domain, an :class:`Intent`, or None: no opinion. The machine takes
    the slowest of its speeds that is at least the one wanted.

    A policy that raises, answers something else, or does not return within ``call_limit_s`` ends the comparison with
    :class:`wattwise.Error`.
    """

    name: str
    """Its name in the result; by default the class's. No built-in policy's."""

    cost_ns: int = 0
    """CPU time of one decision at the machine's highest speed, in ns: the machine is charged for it."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in cls.__dict__:
            cls.name = cls.__name__

    def cadence(self) -> Cadence:
        """When it wants to be asked; read once, after construction. By default by a kernel timer, every 10 ms."""
        return Cadence.timer(10_000_000)

    def start(self, now: Observation) -> Speeds:
        """The speed with which it takes over; all samples are zero."""
        return None

    def observe(self, now: Observation) -> Speeds:
        """One decision."""
        raise NotImplementedError
