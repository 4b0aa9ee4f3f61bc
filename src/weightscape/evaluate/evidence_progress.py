"""Progress of many runs in a row: each phase says which run it is a part of."""

from collections.abc import Mapping

from weightscape.core import Progress


class NamedPhases(Progress):
    """Passes everything on to `inner`, with `name` before the label of each phase."""

    def __init__(self, name: str, inner: Progress):
        self._name = name
        self._inner = inner

    def start(self, label: str, total: int) -> None:
        self._inner.start(f"{self._name}: {label}", total)

    def advance(self, done: int, facts: Mapping[str, float]) -> None:
        self._inner.advance(done, facts)

    def finish(self) -> None:
        self._inner.finish()

    def seconds_left(self) -> float:
        return self._inner.seconds_left()
