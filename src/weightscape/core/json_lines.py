"""JSON lines: progress for programs, one object a line.

{"event": "advance", "phase": "sampling", "done": 96, "total": 500, "seconds": 2.1, "per_second": 51.2, …}
"""

import json
import math
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from weightscape.core.pace import Pace
from weightscape.core.progress import Progress


@runtime_checkable
class Stream(Protocol):
    """Where lines can be written: a file, the standard error."""

    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...


class JsonLines(Progress):
    """Writes every event to `stream` at once.

    `event` is "start", "advance" or "finish"; `seconds` count from the start of the phase. Facts follow under their own
    names. A number that is not known, or not finite, is null.
    """

    def __init__(self, stream: Stream):
        self._stream = stream
        self._pace: Pace | None = None

    def start(self, label: str, total: int) -> None:
        self._pace = Pace(label, total)
        self._write("start", self._pace, {})

    def advance(self, done: int, facts: Mapping[str, float]) -> None:
        if self._pace is not None:
            self._write("advance", self._pace, self._pace.advance(done, facts))

    def finish(self) -> None:
        if self._pace is not None:
            self._write("finish", self._pace, self._pace.counts)
            self._pace = None

    def seconds_left(self) -> float:
        return math.inf

    def _write(self, event: str, pace: Pace, facts: Mapping[str, int | float]) -> None:
        record = {"event": event, "phase": pace.label, "done": pace.done, "total": pace.total}
        numbers = {"seconds": pace.seconds, "per_second": pace.per_second, **facts}
        record |= {name: _finite(value) for name, value in numbers.items()}
        self._stream.write(json.dumps(record, allow_nan=False) + "\n")
        self._stream.flush()


def _finite(value: int | float | None) -> int | float | None:
    """A plain number, or None where JSON has none."""
    if value is None or not math.isfinite(value):
        return None
    return value if isinstance(value, int) else float(value)
