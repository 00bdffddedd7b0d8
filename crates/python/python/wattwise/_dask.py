"""A sweep on a Dask cluster.

The plan and its files are sent once, each under the hash of its content, and copied from worker to worker; a task is three
numbers. So many blocks are under way as keep every thread busy and one waiting. A block whose worker dies is run again.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import _wattwise as engine
from ._order import VERSION, opened
from ._store import parquet
from ._wattwise import Error

_EACH = 2
"""Blocks under way for each thread: one that runs, one that waits."""

_TRIES = 4
"""A block whose worker dies so often kills its workers."""

_RECOUNT_S = 5.0
"""How often the cluster's threads are counted: it may grow and shrink."""

_plans: dict[str, engine.Plan] = {}
_opening = threading.Lock()
_runs = itertools.count()


def version() -> str:
    """What a worker runs."""
    return engine.__version__


def block(text: bytes, inputs: Sequence[bytes], first: int, last: int, packed: bool, wanted: str) -> bytes:
    """What a worker does: some cases of a plan; as a Parquet file where that is wanted and the worker has pyarrow, since much less
    has to be sent then."""
    if engine.__version__ != wanted:
        raise Error(_mismatch("a worker", engine.__version__, wanted))

    name = hashlib.sha256(text).hexdigest()
    with _opening:
        plan = _plans.get(name)
        if plan is None:
            files = {hashlib.sha256(data).hexdigest(): data for data in inputs}
            plan = opened(json.loads(text), files)
            _plans.clear()
            _plans[name] = plan
    data = plan.run(first, last)
    if packed:
        with contextlib.suppress(ImportError):
            return parquet(data)
    return data


def _mismatch(who: str, theirs: str, ours: str) -> str:
    return f"client: {who} has wattwise {theirs}, and this is {ours}; install the same version everywhere"


def _of(e: BaseException, number: int) -> Error:
    return Error(str(e) if isinstance(e, Error) else f"client: block {number}: {type(e).__name__}: {e}")


def _threads(client: Any) -> int:
    return sum(client.nthreads().values())


def on_cluster(
    client: Any,
    text: str,
    inputs: dict[str, bytes],
    blocks: Sequence[tuple[int, int]],
    todo: Sequence[int],
    packed: bool,
    tell: Callable[[int], None],
) -> Iterator[tuple[int, bytes]]:
    """Blocks as they are done."""
    distributed: Any = importlib.import_module("distributed")
    killed: Any = importlib.import_module("distributed.scheduler").KilledWorker


    try:
        versions = client.run(version, on_error="return")
    except (OSError, ValueError) as e:
        raise Error(f"client: {e}") from None
    for worker, theirs in versions.items():
        if isinstance(theirs, BaseException):
            raise Error(f"client: {worker} cannot use wattwise ({theirs}); install it there")
        if theirs != VERSION:
            raise Error(_mismatch(worker, theirs, VERSION))

    def send() -> tuple[Any, list[Any]]:
        sent = client.scatter([text.encode(), *inputs.values()], broadcast=True, hash=True)
        return sent[0], sent[1:]

    plan, files = send()
    run = next(_runs)
    flying: dict[Any, int] = {}
    tries: dict[int, int] = {}
    waiting = list(reversed(todo))
    arriving = distributed.as_completed()
    counted, most = 0.0, 0
    cases = 0

    def submit(number: int) -> None:
        first, last = blocks[number]
        tries[number] = tries.get(number, 0) + 1
        if tries[number] > _TRIES:
            raise Error(
                f"client: block {number} (cases {first} to {last}) lost its worker {_TRIES} times; is its memory large enough?"
            )
        key = f"wattwise-{id(client)}-{run}-{number}-{tries[number]}"
        future = client.submit(block, plan, files, first, last, packed, VERSION, key=key, pure=False)
        flying[future] = number
        arriving.add(future)

    try:
        while waiting or flying:
            if time.monotonic() - counted > _RECOUNT_S:
                counted, most = time.monotonic(), max(1, _EACH * _threads(client))
            while waiting and len(flying) < most:
                submit(waiting.pop())
            future = next(arriving)
            number = flying.pop(future)
            if future.status == "finished":
                data = future.result()
                future.release()
                cases += blocks[number][1] - blocks[number][0]
                tell(cases)
                yield number, data
            elif future.status == "error" and not isinstance(future.exception(), killed):
                raise _of(future.exception(), number)
            else:
                # The worker died, perhaps with the only copy of the inputs.
                plan, files = send()
                submit(number)
    finally:
        for future in flying:
            future.cancel()
