"""Which model a method would choose, and how far ahead of the next one that model is.

    lead = log p(D | best) − log p(D | second),      its variance is the sum of both squared standard errors

A lead of 3 nats is a factor of 20 in favour of the best, where both were as probable before.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from weightscape.evaluate.evidences import EvidenceRow

_CLEAR = 2.0
"""Standard errors; a smaller lead may be noise."""


class Preference(NamedTuple):
    """What one method makes of all models.

    - `ranked`: models with a verdict that can be trusted, the best first.
    - `not_trusted`: models whose verdict cannot be.
    """

    method: str
    ranked: tuple[EvidenceRow, ...]
    not_trusted: tuple[EvidenceRow, ...]

    @property
    def lead(self) -> tuple[float, float] | None:
        """By how many nats the best leads, and the standard error of that; None where there is no second."""
        verdicts = [row.verdict for row in self.ranked[:2] if row.verdict is not None]
        if len(verdicts) < 2:
            return None
        best, second = verdicts
        return best.value - second.value, math.hypot(best.standard_error, second.standard_error)

    @property
    def is_clear(self) -> bool:
        """Whether the lead is more than two of its standard errors."""
        return self.lead is None or self.lead[0] > _CLEAR * self.lead[1]


def preferences(rows: Sequence[EvidenceRow]) -> tuple[Preference, ...]:
    """One for each method, in the order in which they come."""
    return tuple(_preference(method, rows) for method in dict.fromkeys(row.method for row in rows))


def _preference(method: str, rows: Sequence[EvidenceRow]) -> Preference:
    told = [(row.verdict, row) for row in rows if row.method == method]
    usable = [(verdict.value, row) for verdict, row in told if verdict is not None and verdict.is_trusted]
    ranked = [row for _, row in sorted(usable, key=lambda pair: pair[0], reverse=True)]
    doubtful = [row for verdict, row in told if verdict is not None and not verdict.is_trusted]
    return Preference(method, tuple(ranked), tuple(doubtful))
