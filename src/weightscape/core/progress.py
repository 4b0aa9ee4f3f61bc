"""Showing how far a long run is, and telling it when its time is up.

A `Progress` hears of phases (warm-up, sampling) and of steps done in each; it also says how many seconds
the run may still take. `bar` draws it on a terminal, `json_lines` writes it for programs.
"""

import abc
import math
import time
from collections.abc import Mapping


class Progress(abc.ABC):
    """What a run reports to, phase by phase."""

    @abc.abstractmethod
    def start(self, label: str, total: int) -> None:
        """A phase of `total` steps begins."""

    @abc.abstractmethod
    def advance(self, done: int, facts: Mapping[str, float]) -> None:
        """`done` steps of this phase are complete; `facts` are numbers worth seeing, of the steps since last time.

        A resumed phase starts with some steps done. Facts named in `pace.COUNTS` are counts, and add up.
        """

    @abc.abstractmethod
    def finish(self) -> None:
        """The phase is over, complete or not."""

    @abc.abstractmethod
    def seconds_left(self) -> float:
        """How long the run may still take; infinity where nobody set a bound."""


class Silent(Progress):
    """Says nothing and sets no bound."""

    def start(self, label: str, total: int) -> None: ...

    def advance(self, done: int, facts: Mapping[str, float]) -> None: ...

    def finish(self) -> None: ...

    def seconds_left(self) -> float:
        return math.inf


class Deadline(Progress):
    """Passes everything on to `inner` and ends the run's time `seconds` after it was made."""

    def __init__(self, seconds: float, inner: Progress):
        self._end = time.monotonic() + seconds
        self._inner = inner

    def start(self, label: str, total: int) -> None:
        self._inner.start(label, total)

    def advance(self, done: int, facts: Mapping[str, float]) -> None:
        self._inner.advance(done, facts)

    def finish(self) -> None:
        self._inner.finish()

    def seconds_left(self) -> float:
        return min(self._end - time.monotonic(), self._inner.seconds_left())
