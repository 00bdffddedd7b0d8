"""How far something has come: one line that is written over, on a terminal or in a notebook; nothing elsewhere."""

from __future__ import annotations

import sys
import time


class Progress:
    """Called with how much is done of how much; it writes at most some times a second."""

    def __init__(self, what: str, shown: bool | None = None) -> None:
        self._what = what
        self._shown = _is_watched() if shown is None else shown
        self._since = time.monotonic()
        self._last = 0.0
        self._written = 0

    def __call__(self, done: int, of: int) -> None:
        now = time.monotonic()
        if not self._shown or now - self._last < 0.2:
            return
        self._last = now
        taken = now - self._since
        rest = f", {taken * (of - done) / done:.0f} s to go" if 0 < done < of and taken > 2 else ""
        self._write(f"{self._what} {done:,} of {of:,}, {taken:.0f} s{rest}")

    def end(self) -> None:
        """Takes the line away."""
        if self._written:
            self._write("")

    def _write(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self._written) + ("" if text else "\r"))
        sys.stderr.flush()
        self._written = len(text)


def _is_watched() -> bool:
    """Whether a person looks: on a terminal, or in a notebook, where standard error is shown under the cell."""
    try:
        return sys.stderr.isatty() or "ipykernel" in type(sys.stderr).__module__
    except (AttributeError, ValueError):
        return False
