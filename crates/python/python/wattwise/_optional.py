"""Libraries that some of this needs, and the rest does not."""

from __future__ import annotations

import importlib
from typing import Any

from ._arguments import refused


def optional(module: str, what: str, extra: str) -> Any:
    """A module, or one line that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise refused(f"{what}: needs {module}; install it with 'pip install wattwise[{extra}]'") from None
