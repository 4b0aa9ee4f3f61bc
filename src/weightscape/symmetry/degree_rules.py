"""Rules of degrees: what an operation asks of the scales and signs of its operands.

If unit i of an operand is multiplied by s^d, d is its degree. A rule says which degrees an operation allows and which
its result has: a sum needs equal degrees, a product adds them, tanh allows no scale but lets signs through. Scales and
signs have rules of their own.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from weightscape.symmetry.ledger import STAYS, Equation


@dataclasses.dataclass(frozen=True)
class Rule:
    """Whether the operands' degrees must be equal or zero or may be anything, and how the result's follows.

    - `needs`: "equal", "zero" or "nothing".
    - `weights`: the result's degree is Σ weights[k] · degree of operand k; None where it is that of the first operand.
    """

    needs: str = "nothing"
    weights: tuple[float, ...] | None = None


SUM = Rule("equal")
NONE = Rule("zero")
ANY = Rule("nothing", ())
COMPARE = Rule("equal", ())
PASS = Rule("nothing", (1.0,))


def product(*weights: float) -> Rule:
    """The result's degree is a weighted sum of the operands'."""
    return Rule("nothing", weights)


def equations(
    rule: Rule, made: np.ndarray, degrees: Sequence[np.ndarray | None], free: Sequence[bool]
) -> list[Equation]:
    """What a rule asks of degrees; an operand that is zero may have any, one that repeats has none."""
    zero = np.full_like(made, STAYS)
    present = [zero if degree is None else degree for degree in degrees]
    asked = [degree for degree, is_zero in zip(present, free, strict=True) if not is_zero]
    found = []
    if rule.needs == "zero":
        found = [Equation((1.0,), (degree,)) for degree in asked]
    if rule.needs == "equal":
        found = [Equation((1.0, -1.0), (asked[0], degree)) for degree in asked[1:]]
    if rule.weights is None:
        first = asked[0] if asked else zero
        return [*found, Equation((1.0, -1.0), (made, first))]
    weights = (1.0, *(-weight for weight in rule.weights))
    return [*found, Equation(weights, (made, *present[: len(rule.weights)]))]
