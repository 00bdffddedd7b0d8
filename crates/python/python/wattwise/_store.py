"""A sweep's folder: `.plan.json`, which says what is swept and how it is cut, and one file a block.

A block's file is written beside its place and moved there once it is on the disk, so it is there whole or not at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from . import _wattwise as engine
from ._wattwise import Error

PLAN = ".plan.json"
"""Hidden, so that whoever reads a folder of Parquet files leaves it aside."""


_PARQUET = b"PAR1"
"""What a Parquet file begins with."""


def parquet(data: bytes) -> bytes:
    """A block as a Parquet file's bytes: a twentieth of an Arrow file's."""
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.ipc.open_file(pyarrow.py_buffer(data)).read_all()
    out = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(table, out, compression="zstd")
    packed: bytes = out.getvalue().to_pybytes()
    return packed


class Store:
    """The folder ``path``, for one sweep at a time."""

    def __init__(self, path: str | os.PathLike[str], spec: dict[str, Any], sha256: str) -> None:
        self.path = Path(path)
        self._spec = spec
        self._sha256 = sha256
        self._lock: int | None = None
        self._count = 0
        self._suffix = self.path.suffix
        if self._suffix not in (".parquet", ".arrow"):
            raise Error(f"out {path}: expected a name that ends in .parquet or .arrow")
        if self._suffix == ".parquet":
            try:
                import pyarrow.parquet  # noqa: F401
            except ImportError:
                raise Error(
                    f"out {path}: needs pyarrow (pip install wattwise[sweep]); a name that ends in .arrow needs nothing"
                ) from None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def open(self, resume: bool, cut: Callable[[], list[tuple[int, int]]]) -> list[tuple[int, int]]:
        """The blocks: those of the plan that is there, or ``cut`` anew."""
        if self.path.exists() and not self.path.is_dir():
            raise Error(f"out {self.path}: is a file; expected a folder, or a new name")
        if not resume and self.path.exists() and any(self.path.iterdir()):
            raise Error(f"out {self.path}: is there already; name another, remove it, or let resume be True")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path, os.O_RDONLY)
            # A file system that has no locks has none.
            with contextlib.suppress(OSError):
                self._take()
        except BlockingIOError:
            raise Error(f"out {self.path}: another sweep is writing it") from None
        except OSError as e:
            raise Error(f"out {self.path}: {e.strerror}; expected a folder that can be written") from None
        plan = self.path / PLAN
        if plan.exists():
            blocks = self._known(plan)
        elif any(self.path.iterdir()):
            raise Error(f"out {self.path}: holds other files and no sweep; name another folder")
        else:
            blocks = cut()
            text = json.dumps({"sha256": self._sha256, "plan": self._spec, "blocks": blocks})
            self._whole(plan, lambda part: part.write_text(text))
        self._count = len(blocks)
        return blocks

    def _take(self) -> None:
        assert self._lock is not None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Error(f"out {self.path}: another sweep is writing it") from None

    def _known(self, plan: Path) -> list[tuple[int, int]]:
        try:
            known = json.loads(plan.read_text())
            sha256, spec = known["sha256"], known["plan"]
            blocks = [(int(first), int(last)) for first, last in known["blocks"]]
        except (OSError, ValueError, KeyError, TypeError) as e:
            raise Error(f"{plan}: {type(e).__name__}: {e}; expected a sweep's plan; name another folder") from None
        if sha256 != self._sha256:
            differs = ", ".join(sorted(k for k in {*spec, *self._spec} if spec.get(k) != self._spec.get(k)))
            raise Error(f"out {self.path}: holds another sweep, which differs in {differs}; name another folder, or remove it")
        return blocks

    def _file(self, number: int) -> Path:
        return self.path / f"block-{number:05}{self._suffix}"

    def files(self) -> list[Path]:
        """The blocks that are there, in the order of the cases."""
        return [file for file in map(self._file, range(self._count)) if file.exists()]

    def has(self, number: int) -> bool:
        """Whether a block is done."""
        return self._file(number).exists()

    def write(self, number: int, data: bytes) -> None:
        """Keeps a block: an Arrow file's bytes, or a Parquet file's."""
        self._whole(self._file(number), lambda part: self._put(part, data))

    @property
    def is_parquet(self) -> bool:
        """Whether blocks become Parquet files."""
        return self._suffix == ".parquet"

    def _put(self, part: Path, data: bytes) -> None:
        part.write_bytes(parquet(data) if self.is_parquet and not data.startswith(_PARQUET) else data)

    def _whole(self, file: Path, put: Callable[[Path], object]) -> None:
        part = file.with_name(f".{file.name}.part")
        try:
            put(part)
            with part.open("rb") as written:
                os.fsync(written.fileno())
            part.replace(file)
        except OSError as e:
            with contextlib.suppress(OSError):
                part.unlink()
            why = e.strerror or str(e)
            raise Error(
                f"out {self.path}: {why}; what is done is kept: run it again when there is room, and it goes on"
            ) from None

    def stream(self, requested_schema: object | None) -> object:
        """All blocks as one Arrow stream."""
        files = self.files()
        if self._suffix == ".arrow":
            return engine.read_ipc([str(file) for file in files]).__arrow_c_stream__(requested_schema)
        import pyarrow.dataset

        # Small read-ahead: a sweep may be larger than memory.
        reader = pyarrow.dataset.dataset([str(file) for file in files], format="parquet").scanner(batch_readahead=2).to_reader()
        stream: object = reader.__arrow_c_stream__(requested_schema)
        return stream
