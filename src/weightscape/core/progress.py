"""Showing how far a long run is, and telling it when its time is up.

A `Progress` hears of phases (warm-up, sampling) and of steps done in each; it also says how many seconds
the run may still take. The default shows a bar on a terminal and is quiet elsewhere.
"""

import abc
import math
import sys
import time
from collections.abc import Mapping

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress


class Progress(abc.ABC):
    """What a run reports to, phase by phase."""

    @abc.abstractmethod
    def start(self, label: str, total: int) -> None:
        """A phase of `total` steps begins."""

    @abc.abstractmethod
    def advance(self, done: int, facts: Mapping[str, float]) -> None:
        """`done` steps of this phase are complete; `facts` are numbers worth seeing."""

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


class Bar(Progress):
    """One line on the terminal for each phase: a bar, the facts, the time left."""

    def __init__(self, console: Console | None = None):
        self._console = console or Console(stderr=True)
        self._bar: RichProgress | None = None

    def start(self, label: str, total: int) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[facts]}"),
        )
        self._bar = RichProgress(*columns, console=self._console)
        self._bar.add_task(label, total=total, facts="")
        self._bar.start()

    def advance(self, done: int, facts: Mapping[str, float]) -> None:
        if self._bar is not None:
            shown = "  ".join(f"{name} {value:.3g}" for name, value in facts.items())
            self._bar.update(self._bar.task_ids[0], completed=done, facts=shown)

    def finish(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

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


def default_progress(progress: Progress | None = None) -> Progress:
    """`progress` itself, or a bar on a terminal, or silence elsewhere."""
    if progress is not None:
        return progress
    return Bar() if sys.stderr.isatty() else Silent()
