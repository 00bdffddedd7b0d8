"""What a sweep is, in words that travel: the order, and the plan that the engine makes of it here or on a worker."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from typing import Any

from . import _wattwise as engine
from ._wattwise import Machine, Workload

VERSION = engine.__version__
SCHEMA = "wattwise.sweep/2"


class Order:
    """A sweep as it was asked for: what it is, in words that have a hash, and the files that it needs, by theirs."""

    def __init__(self, works: Sequence[Workload], machines: Sequence[Machine], rest: dict[str, Any]) -> None:
        self.inputs: dict[str, bytes] = {}
        self.spec: dict[str, Any] = {
            "schema": SCHEMA,
            "version": VERSION,
            "workloads": [self._workload(work) for work in works],
            "machines": [{"name": one.name, "sha256": self._input(one.text.encode())} for one in machines],
            **rest,
        }
        self.text = json.dumps(self.spec, sort_keys=True)
        self.sha256 = hashlib.sha256(self.text.encode()).hexdigest()

    def _workload(self, work: Workload) -> dict[str, Any]:
        out: dict[str, Any] = {"name": work.name, "asked": work.asked}
        data = work.data()
        if data is None:
            return {**out, "bundled": work.bundled}
        return {**out, "source": work.source, "file": os.path.basename(work.given), "sha256": self._input(data)}

    def _input(self, data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        self.inputs[name] = data
        return name


def made(spec: dict[str, Any], works: Sequence[Workload], machines: Sequence[Machine]) -> engine.Plan:
    return engine.Plan(
        list(works),
        list(machines),
        spec["policies"],
        reference=spec["reference"],
        goal=spec["goal"],
        max_slowdown=spec["max_slowdown"],
        replicas=spec["replicas"],
        seed=spec["seed"],
        budget_text=spec["budget"],
    )


def opened(spec: dict[str, Any], inputs: dict[str, bytes]) -> engine.Plan:
    """The plan on a computer that has nothing but its words and its files."""
    works = []
    for entry in spec["workloads"]:
        if "bundled" in entry:
            works.append(Workload.find(entry["bundled"], *entry["asked"]))
        else:
            work = Workload.from_bytes(entry["file"], inputs[entry["sha256"]], *entry["asked"])
            works.append(work.renamed(entry["name"], entry["source"]))
    machines = [Machine.parse(inputs[entry["sha256"]].decode(), entry["name"]) for entry in spec["machines"]]
    return made(spec, works, machines)
