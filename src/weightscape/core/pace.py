"""Pace: how fast a phase goes, and the counts that add up over it."""

import time
from collections.abc import Mapping

COUNTS = ("divergent",)
"""Facts that are counts of the newest steps; they are summed over the phase."""


class Pace:
    """One phase of `total` steps, called `label`, as it was heard of so far.

    - `done`: steps that are complete.
    - `counts`: the facts in `COUNTS`, summed over the phase.
    """

    def __init__(self, label: str, total: int):
        self.label = label
        self.total = total
        self.done = 0
        self.counts: dict[str, int] = {}
        self._began = time.monotonic()
        self._first: tuple[float, int] | None = None
        self._newest = self._began

    def advance(self, done: int, facts: Mapping[str, float]) -> dict[str, int | float]:
        """Take note of progress; returns the facts, counts replaced by their sums."""
        self.done, self._newest = done, time.monotonic()
        self._first = self._first or (self._newest, done)
        for name in COUNTS:
            if name in facts:
                self.counts[name] = self.counts.get(name, 0) + int(facts[name])
        return {**facts, **self.counts}

    @property
    def seconds(self) -> float:
        """Time since the phase began."""
        return time.monotonic() - self._began

    @property
    def per_second(self) -> float | None:
        """Steps a second since the first report, which waited for the compiler; None until there is a second one."""
        if self._first is None or self._newest <= self._first[0]:
            return None
        return (self.done - self._first[1]) / (self._newest - self._first[0])
