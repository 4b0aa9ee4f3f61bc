"""Choices are objects; a name is resolved once, where a user writes it."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from weightscape.core.checks import require_known, require_type

Chosen = TypeVar("Chosen")

HAS_NAMES = "has_names"
"""In the metadata of a field: its value may be given by a name, on the command line too."""


def chosen(asked: str, value: Chosen | str, kind: type[Chosen], known: Mapping[str, Callable[[], Chosen]]) -> Chosen:
    """The object itself, or the one that `known` has under its name."""
    if isinstance(value, str):
        require_known(asked, value, known)
        return known[value]()
    remedy = f"Pass one of {', '.join(sorted(known))}, or an object."
    require_type(
        isinstance(value, kind), f"{asked} must be a {kind.__name__} or its name", type(value).__name__, remedy
    )
    return value
