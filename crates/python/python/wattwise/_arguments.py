"""Arguments as a researcher has them: numbers of numpy, columns of pandas and polars, generators, paths, entries of our lists.

Each function here takes one kind of value and gives Python's own, or raises :class:`Error` with one line that says which argument it
is, what was expected, and what came.
"""

from __future__ import annotations

import enum
import io
import math
import operator
import os
from collections.abc import Iterable, KeysView, Mapping, Set
from itertools import islice
from typing import Any, Union

from . import _wattwise as engine
from ._wattwise import Error

Share = Union[float, str, None]

_MANY = 1_000_000
"""An iterator that has more than this has no end."""

_SHOWN = 60
"""Characters of a wrong value that are shown."""


def refused(line: str) -> Error:
    """An error on one line, whatever it quotes."""
    return Error(engine.one_line(line))


def shown(value: object) -> str:
    """A value in an error: short, and on one line."""
    try:
        text = str(value) if isinstance(value, (int, float)) else repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 3] + "..."


def wrong(name: str, value: object, expected: str) -> Error:
    """The line for an argument that cannot be used."""
    return refused(f"{name}={shown(value)}: expected {expected}")


def _plain(value: object) -> object:
    """The value of an enum's member; a numpy array without dimensions as its one element."""
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return value.item()
    return value


def _is_bool(value: object) -> bool:
    return isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b"


def flag(value: object, name: str) -> bool:
    """True or False, Python's or numpy's."""
    if not isinstance(plain := _plain(value), bool):
        raise wrong(name, value, "True or False")
    return plain


def maybe_flag(value: object, name: str) -> bool | None:
    """True, False or None."""
    return None if value is None else flag(value, name)


def number(value: object, name: str, expected: str, least: float = -math.inf, most: float = math.inf) -> float:
    """A number within bounds: int, float, numpy's, Decimal, Fraction."""
    plain = _plain(value)
    try:
        if _is_bool(plain) or isinstance(plain, (str, bytes, bytearray)) or getattr(plain, "ndim", False):
            raise TypeError
        result = float(plain)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise wrong(name, value, expected) from None
    if not least <= result <= most:
        raise wrong(name, value, expected)
    return result


def whole(value: object, name: str, least: int = 0, most: int = 2**64 - 1, also: str = "") -> int:
    """A whole number within bounds; a float that is whole counts."""
    expected = f"a whole number, {least} or more" if most == 2**64 - 1 else f"a whole number, {least} to {most}"
    expected += also
    plain = _plain(value)
    try:
        if _is_bool(plain) or getattr(plain, "ndim", False):
            raise TypeError
        result = operator.index(plain)  # type: ignore[arg-type]
    except TypeError:
        real = number(plain, name, expected)
        if not real.is_integer():
            raise wrong(name, value, expected) from None
        result = int(real)
    if not least <= result <= most:
        raise wrong(name, value, expected)
    return result


def text(value: object, name: str, expected: str = "text") -> str:
    """Text, whatever its class."""
    plain = _plain(value)
    if not isinstance(plain, str):
        raise wrong(name, value, expected)
    return _encodable(str.__str__(plain), name)


def _encodable(given: str, name: str) -> str:
    try:
        given.encode()
    except UnicodeEncodeError:
        raise wrong(name, given, "text in UTF-8; rename the file") from None
    if "\0" in given:
        raise wrong(name, given, "text without a zero byte")
    return given


def maybe_text(value: object, name: str, expected: str = "text, or None") -> str | None:
    """Text or None."""
    return None if value is None else text(value, name, expected)


def path(value: object, name: str, expected: str) -> str:
    """A name or a file: text, bytes, a path, or an entry of a list of ours."""
    plain = _plain(value)
    if isinstance(plain, Mapping) and isinstance(plain.get("name"), str):
        plain = plain["name"]
    if not isinstance(plain, (str, bytes, os.PathLike)):
        raise wrong(name, value, expected)
    try:
        given = os.fsdecode(plain)
    except (TypeError, ValueError):
        raise wrong(name, value, expected) from None
    if not given:
        raise wrong(name, value, f"{expected}; it is empty")
    return _encodable(given, name)


def several(value: Any, name: str, expected: str) -> list[Any]:
    """One thing, or all of a list, a tuple, an array, a column, a generator. What has no order comes in the order of its text."""
    single = (str, bytes, os.PathLike, Mapping, type, enum.Enum, io.IOBase)
    if isinstance(value, single) or not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0:
        return [value]
    if getattr(value, "ndim", 1) != 1 or len(getattr(value, "shape", (0,))) != 1:
        raise wrong(name, value, f"{expected}, or a list of them; of a table give one column")
    items = list(islice(value, _MANY + 1))
    if len(items) > _MANY:
        raise refused(f"{name}: more than {_MANY:,}, perhaps without end; expected a list")
    return sorted(items, key=str) if isinstance(value, Set) and not isinstance(value, KeysView) else items


def share(value: Share, name: str) -> float:
    """A part of a whole: ``"20%"`` or ``0.2``, 0 to 1."""
    return engine.share(name, _share_text(value, name, "a share such as '20%' or 0.2"))


def increase(value: Share, name: str) -> float | None:
    """By how much more something may be: ``"3%"``, ``0.03`` or ``"1.03x"``; ``"any"`` and None are no limit."""
    if value is None:
        return None
    given = _share_text(value, name, "a share such as '3%', 0.03 or '1.03x', or 'any'")
    more = engine.increase(name, "any" if given == "inf" else given)
    return None if math.isinf(more) else more


def _share_text(value: Share, name: str, expected: str) -> str:
    plain = _plain(value)
    if isinstance(plain, str):
        return text(plain, name)
    real = number(plain, name, expected)
    return f"{real:.0f}" if real.is_integer() else repr(real)
