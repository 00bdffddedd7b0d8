"""Shares as the command line takes them."""

from __future__ import annotations

import math
from typing import Union

from ._wattwise import Error

Share = Union[float, str, None]


def share(value: Share, flag: str) -> float | None:
    """``"3%"``, ``0.03``, or ``"any"`` and None for no limit."""
    if value is None or value == "any":
        return None
    try:
        text = value.strip() if isinstance(value, str) else value
        number = float(text[:-1]) / 100.0 if isinstance(text, str) and text.endswith("%") else float(text)
    except ValueError:
        number = math.nan
    if not 0.0 <= number:
        raise Error(f"{flag} {value}: expected a share such as 3%, or 'any'")
    return None if math.isinf(number) else number
