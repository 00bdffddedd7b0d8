"""A sweep on a Dask cluster.

The plan and its files are sent once, each under the hash of its content, and copied from worker to worker; a task is three
numbers. So many blocks are under way as keep every thread busy and one waiting. A block whose worker dies is run again.
"""

from __future__ import annotations

import asyncio
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
from ._arguments import refused, shown
from ._optional import optional
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
        raise refused(_mismatch("a worker", engine.__version__, wanted))

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
    return refused(str(e) if isinstance(e, Error) else f"client: block {number}: {type(e).__name__}: {e}")


_EXPECTED = "an open dask.distributed.Client, a cluster of Dask, or a scheduler's address such as 'tcp://host:8786'"


@contextlib.contextmanager
def connected(given: Any) -> Iterator[Any]:
    """A client for what was given. One that is made here is closed at the end, and is never the default of others."""
    distributed = optional("distributed", "client", "sweep")
    own = isinstance(given, str) or isinstance(given, distributed.deploy.Cluster)
    if not own and not isinstance(given, distributed.Client):
        raise refused(f"client={shown(given)}: expected {_EXPECTED}")
    try:
        client = distributed.Client(given, set_as_default=False) if own else given
    except Exception as e:
        raise refused(f"client={shown(given)}: {_why(e)}; expected {_EXPECTED}") from None
    try:
        if client.asynchronous:
            raise refused("client: is asynchronous; expected one that was made without asynchronous=True")
        _alive(client)
        yield client
    finally:
        if own:
            client.close()


def _why(e: BaseException) -> str:
    """An error of Dask's on one line."""
    said = " ".join(str(e).split())
    return f"{type(e).__name__}: {said}" if said else type(e).__name__


def _alive(client: Any) -> None:
    if client.status != "running":
        raise refused(f"client: is {client.status}; expected {_EXPECTED}; what is done is kept: run it again, and it goes on")


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
    try:
        _same_version(client)
        yield from _blocks(client, text, inputs, blocks, todo, packed, tell)
    except (Error, GeneratorExit, KeyboardInterrupt):
        raise
    except (Exception, asyncio.CancelledError) as e:
        _alive(client)
        raise refused(f"client: {_why(e)}; what is done is kept: run it again when the cluster is there, and it goes on") from e


def _same_version(client: Any) -> None:
    """Every worker has this version."""
    for worker, theirs in client.run(version, on_error="return").items():
        if isinstance(theirs, BaseException):
            raise refused(f"client: {worker} cannot use wattwise ({_why(theirs)}); install it there")
        if theirs != VERSION:
            raise refused(_mismatch(worker, theirs, VERSION))


def _blocks(
    client: Any,
    text: str,
    inputs: dict[str, bytes],
    blocks: Sequence[tuple[int, int]],
    todo: Sequence[int],
    packed: bool,
    tell: Callable[[int], None],
) -> Iterator[tuple[int, bytes]]:
    distributed: Any = importlib.import_module("distributed")
    killed: Any = importlib.import_module("distributed.scheduler").KilledWorker

    def send() -> tuple[Any, list[Any]]:
        sent = client.scatter([text.encode(), *inputs.values()], broadcast=True, hash=True)
        return sent[0], sent[1:]

    plan, files = send()
    run = next(_runs)
    flying: dict[Any, int] = {}
    tries: dict[int, int] = {}
    waiting = list(reversed(todo))
    # Of this client, whichever is the default.
    arriving = distributed.as_completed(loop=client.loop)
    counted, most = 0.0, 0
    cases = 0

    def submit(number: int) -> None:
        first, last = blocks[number]
        tries[number] = tries.get(number, 0) + 1
        if tries[number] > _TRIES:
            raise refused(
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
                # The worker died, perhaps with the only copy of the inputs; or the client was closed.
                _alive(client)
                plan, files = send()
                submit(number)
    finally:
        with contextlib.suppress(Exception):
            for future in flying:
                future.cancel()
