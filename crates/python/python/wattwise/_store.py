"""A sweep's folder: `.plan.json`, which says what is swept and how it is cut, one file a block, and `.blocks.jsonl`, which says of
each block how many rows it has and the hash of its file.

A block's file is written beside its place and moved there once it is on the disk, so it is there whole or not at all; its
line is written before. So whatever has happened to the files meanwhile, a block counts by its content: one that is cut,
changed, or another's is noticed and made again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import stat
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from . import _wattwise as engine
from ._arguments import refused

PLAN = ".plan.json"
BLOCKS = ".blocks.jsonl"
"""Hidden, so that whoever reads a folder of Parquet files leaves them aside."""

_PART = re.compile(r"\..*\.part")
"""A file that was being written when the power failed."""

_NAMED = 5
"""Files that a warning names; of more it says how many."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

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


def _rows(data: bytes) -> int:
    """Rows of an Arrow or a Parquet file."""
    if not data.startswith(_PARQUET):
        return engine.ipc_rows(data)
    import pyarrow
    import pyarrow.parquet

    return int(pyarrow.parquet.ParquetFile(pyarrow.py_buffer(data)).metadata.num_rows)


def _sha256(file: Path) -> str | None:
    """The hash of a file's content; none where it cannot be read, or is no file."""
    digest = hashlib.sha256()
    try:
        # A pipe in a block's place would be waited for.
        if not stat.S_ISREG(file.stat().st_mode):
            return None
        with file.open("rb") as opened:
            while piece := opened.read(1 << 20):
                digest.update(piece)
    except OSError:
        return None
    return digest.hexdigest()


def _names(files: Sequence[str]) -> str:
    more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
    return ", ".join(files[:_NAMED]) + more


class Store:
    """The folder ``path``, for one sweep at a time."""

    def __init__(self, path: str | os.PathLike[str], spec: dict[str, Any], sha256: str, cases: int) -> None:
        self.path = Path(path)
        self._spec = spec
        self._sha256 = sha256
        self._cases = cases
        self._lock: int | None = None
        self._blocks: list[tuple[int, int]] = []
        self._done: set[int] = set()
        self._suffix = self.path.suffix
        if self._suffix not in (".parquet", ".arrow"):
            raise refused(f"out {path}: expected a name that ends in .parquet or .arrow")
        if self._suffix == ".parquet":
            try:
                import pyarrow.parquet  # noqa: F401
            except ImportError:
                raise refused(
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
            raise refused(f"out {self.path}: is a file; expected a folder, or a new name")
        if not resume and self.path.exists() and any(self.path.iterdir()):
            raise refused(f"out {self.path}: is there already; name another, remove it, or let resume be True")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path, os.O_RDONLY)
            # A file system that has no locks has none.
            with contextlib.suppress(OSError):
                self._take()
        except BlockingIOError:
            raise refused(f"out {self.path}: another sweep is writing it; wait for it, or name another folder") from None
        except OSError as e:
            raise refused(f"out {self.path}: {e.strerror}; expected a folder that can be written") from None
        plan = self.path / PLAN
        if plan.exists():
            self._blocks = self._known(plan)
            self._look()
        # A plan that was being written when it was killed is none.
        elif any(not _PART.fullmatch(entry.name) for entry in self.path.iterdir()):
            raise refused(f"out {self.path}: holds other files and no sweep; name another folder")
        else:
            self._blocks = cut()
            text = json.dumps({"sha256": self._sha256, "plan": self._spec, "blocks": self._blocks})
            self._whole(plan, lambda part: part.write_bytes(text.encode()))
        return self._blocks

    def _take(self) -> None:
        assert self._lock is not None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise refused(f"out {self.path}: another sweep is writing it; wait for it, or name another folder") from None

    def _known(self, plan: Path) -> list[tuple[int, int]]:
        try:
            known = json.loads(plan.read_bytes())
            sha256, spec = str(known["sha256"]), known["plan"]
            if not isinstance(spec, dict):
                raise TypeError("'plan' is no object")
            blocks = [(int(first), int(last)) for first, last in known["blocks"]]
        except (OSError, ArithmeticError, ValueError, KeyError, TypeError, RecursionError) as e:
            raise refused(f"{plan}: {type(e).__name__}: {e}; expected a sweep's plan; name another folder") from None
        if sha256 != self._sha256:
            differs = ", ".join(sorted(k for k in {*spec, *self._spec} if spec.get(k) != self._spec.get(k)))
            raise refused(f"out {self.path}: holds another sweep, which differs in {differs}; name another folder, or remove it")
        ends = [0, *(last for _, last in blocks)]
        if [first for first, _ in blocks] != ends[:-1] or ends[-1] != self._cases:
            raise refused(
                f"{plan}: its blocks are not the {self._cases} cases of the sweep, one after another; name another folder"
            )
        return blocks

    def _look(self) -> None:
        """Which blocks are there and right. Says which are not, and which files are none of them."""
        lines = self._lines()
        ours = {self._file(n).name: n for n in range(len(self._blocks))}
        damaged, strange = [], []
        for entry in sorted(os.listdir(self.path)):
            number = ours.get(entry)
            if number is not None:
                if (self.path / entry).is_dir():
                    raise refused(
                        f"out {self.path}: {entry} is a folder in the place of a block; remove it, or name another folder"
                    )
                first, last = self._blocks[number]
                found = {"plan": self._sha256, "block": number, "rows": last - first, "sha256": _sha256(self.path / entry)}
                if lines.get(number) == found:
                    self._done.add(number)
                else:
                    damaged.append(entry)
            elif _PART.fullmatch(entry):
                with contextlib.suppress(OSError):
                    (self.path / entry).unlink()
            elif entry not in (PLAN, BLOCKS):
                strange.append(entry)
        if damaged:
            self._warn(f"{_names(damaged)}: not what this sweep wrote there; made again")
        if strange:
            self._warn(f"{_names(strange)}: not of this sweep; left out. Move it: what reads the whole folder reads it too")

    def _warn(self, what: str) -> None:
        # Shown at the line that called sweep().
        warnings.warn(f"out {self.path}: {what}", stacklevel=5)

    def _lines(self) -> dict[int, Any]:
        """What was written of each block, the last where there are several. The power may have failed within a line."""
        lines: dict[int, Any] = {}
        try:
            text = (self.path / BLOCKS).read_bytes() if (self.path / BLOCKS).is_file() else b""
        except OSError:
            text = b""
        for line in text.splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
                entry = json.loads(line)
                lines[entry["block"]] = entry
        return lines

    def _file(self, number: int) -> Path:
        return self.path / f"block-{number:05}{self._suffix}"

    def files(self) -> list[Path]:
        """The blocks that are done, in the order of the cases."""
        return [self._file(number) for number in sorted(self._done)]

    def has(self, number: int) -> bool:
        """Whether a block is done."""
        return number in self._done

    def write(self, number: int, data: bytes) -> None:
        """Keeps a block: an Arrow file's bytes, or a Parquet file's."""
        first, last = self._blocks[number]
        if (rows := _rows(data)) != last - first:
            raise refused(
                f"block {number}: came with {rows} rows; expected those of the cases {first} to {last}; please report it"
            )
        if self.is_parquet and not data.startswith(_PARQUET):
            data = parquet(data)
        line = {"plan": self._sha256, "block": number, "rows": rows, "sha256": hashlib.sha256(data).hexdigest()}
        self._whole(self._file(number), lambda part: part.write_bytes(data), lambda: self._note(json.dumps(line).encode()))
        self._done.add(number)

    def _note(self, line: bytes) -> None:
        """Adds a line, on a line of its own whatever the last one came to."""
        with (self.path / BLOCKS).open("a+b") as file:
            if file.tell() > 0:
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else b"\n" + line
            file.write(line + b"\n")
            file.flush()
            os.fsync(file.fileno())

    @property
    def is_parquet(self) -> bool:
        """Whether blocks become Parquet files."""
        return self._suffix == ".parquet"

    def _whole(self, file: Path, put: Callable[[Path], object], before: Callable[[], object] = lambda: None) -> None:
        part = file.with_name(f".{file.name}.part")
        try:
            put(part)
            with part.open("rb") as written:
                os.fsync(written.fileno())
            before()
            part.replace(file)
        except OSError as e:
            with contextlib.suppress(OSError):
                part.unlink()
            why = e.strerror or str(e)
            when = "when there is room" if e.errno in _FULL else "when that is mended"
            raise refused(f"out {self.path}: {why}; what is done is kept: run it again {when}, and it goes on") from None

    def stream(self, requested_schema: object | None) -> object:
        """All blocks as one Arrow stream."""
        files = self.files()
        if gone := [file.name for file in files if not file.is_file()]:
            raise refused(f"out {self.path}: {_names(gone)}: is gone; run the same sweep again, and it is made again")
        if self._suffix == ".arrow":
            return engine.read_ipc([str(file) for file in files]).__arrow_c_stream__(requested_schema)
        import pyarrow.dataset

        # Small read-ahead: a sweep may be larger than memory.
        reader = pyarrow.dataset.dataset([str(file) for file in files], format="parquet").scanner(batch_readahead=2).to_reader()
        stream: object = reader.__arrow_c_stream__(requested_schema)
        return stream
