"""Facts: an immutable mapping of plain JSON values, so that a record of a run can ride on a pytree."""

import json
from collections.abc import Iterator, Mapping
from typing import Any


class Facts(Mapping[str, Any]):
    """What is known about a run, as JSON; equal and hashed by its text."""

    def __init__(self, **facts: Any):
        self._text = json.dumps(facts, sort_keys=True)
        self._facts = json.loads(self._text)

    def __getitem__(self, name: str) -> Any:
        return self._facts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def __hash__(self) -> int:
        return hash(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Facts) and self._text == other._text

    def __repr__(self) -> str:
        return f"Facts({self._text})"

    def plus(self, **more: Any) -> "Facts":
        """These facts and more; a name that is there already is replaced."""
        return Facts(**{**self._facts, **more})
