"""Lists of dictionaries that print as a table, and that a notebook shows as one."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

from . import _wattwise as engine


class Listing(Sequence[dict[str, Any]]):
    """Entries in order. It is a sequence of dictionaries, so ``pandas.DataFrame(listing)`` takes it."""

    def __init__(self, entries: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> None:
        self._entries = [dict(entry) for entry in entries]
        self._columns = tuple(columns or (self._entries[0] if self._entries else ()))

    @overload
    def __getitem__(self, at: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, at: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, at: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        return self._entries[at]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._entries)

    def __repr__(self) -> str:
        head = [list(self._columns)] if self._columns else []
        lines = head + [[_cell(entry.get(c)) for c in self._columns] for entry in self._entries]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self._columns))]
        return "\n".join("  ".join(f"{cell:{width}}" for cell, width in zip(line, widths)).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        return rows_html(self._columns, [[_cell(entry.get(c)) for c in self._columns] for entry in self._entries])


class Named(Listing):
    """Entries that each have a name and a summary."""

    @property
    def names(self) -> list[str]:
        """The names alone."""
        return [entry["name"] for entry in self._entries]

    def __repr__(self) -> str:
        width = max((len(name) for name in self.names), default=0)
        return "\n".join(f"{line(entry['name']):{width}}  {line(entry['summary'])}" for entry in self._entries)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else " ".join(line(value).split())


def line(value: object) -> str:
    """A text that may come from a stranger's file, on one line on which no terminal acts."""
    return engine.one_line(str(value))


def markup(value: object) -> str:
    """The same for a notebook: no markup, and nothing that changes the order of letters."""
    return html.escape(line(value))


def rows_html(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table; what is in it may come from a stranger's file."""

    def cell(tag: str, value: object) -> str:
        return f"<{tag} style='text-align:left'>{markup(value)}</{tag}>"

    first = "".join(cell("th", name) for name in head)
    rest = "".join("<tr>" + "".join(cell("td", value) for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{first}</tr></thead><tbody>{rest}</tbody></table>"
