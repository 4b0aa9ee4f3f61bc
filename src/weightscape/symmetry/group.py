"""A group of interchangeable units, and where its units lie in the weights.

    units 0 … n−1 of a layer may be permuted: every weight that belongs to unit i goes where those of unit j were

Where the operations around a layer allow it, each unit may also be rescaled by a positive number or change its sign:

    w ← s_i^e w      for every weight w of unit i, with an exponent e that is the same for all units

A ReLU layer has e = 1 for the weights that produce its units, shifts included, and −1 for those that consume them.
"""

import dataclasses
import math

KINDS = ("permutation", "scaling", "sign")
"""What may be done to the units of a group."""


@dataclasses.dataclass(frozen=True)
class Member:
    """One place where the units of a group lie: along one factor of an axis of a leaf.

    - `path`: the leaf.  `factor`: which of its factors (see `LeafFactors`).
    - `positions`: where unit 0, 1, … lies along that factor.
    - `produces`, `consumes`: whether the weights there make the units, or are used with their values.
    - `scale_exponents`, `sign_exponents`: e for each way in which the group may be rescaled or change sign.
    """

    path: str
    factor: int
    positions: tuple[int, ...]
    produces: bool = False
    consumes: bool = False
    scale_exponents: tuple[int, ...] = ()
    sign_exponents: tuple[int, ...] = ()

    @property
    def role(self) -> str:
        """What the weights here do, in a word."""
        names = [name for name, holds in (("produces", self.produces), ("consumes", self.consumes)) if holds]
        return " and ".join(names) or "joins"


@dataclasses.dataclass(frozen=True)
class Group:
    """Units that may be permuted among themselves, and all the places where they lie."""

    name: str
    size: int
    members: tuple[Member, ...]

    @property
    def num_scalings(self) -> int:
        """In how many independent ways each unit may be rescaled."""
        return len(self.members[0].scale_exponents)

    @property
    def num_signs(self) -> int:
        """In how many independent ways each unit may change its sign."""
        return len(self.members[0].sign_exponents)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What may be done to the units: "permutation", "scaling", "sign"."""
        return tuple(
            kind for kind, holds in zip(KINDS, (self.size > 1, self.num_scalings, self.num_signs), strict=True) if holds
        )

    @property
    def log_permutations(self) -> float:
        """log n!."""
        return math.lgamma(self.size + 1)


@dataclasses.dataclass(frozen=True)
class LeafFactors:
    """The axes of a leaf as a row-major product of factors.

    A dense layer that follows a flattened image has the factors height · width, channels and outputs: its first axis
    is a product of two. An axis of size one has a factor only where a group of one unit lies along it.

    - `sizes`: the sizes of the factors, which multiply to the size of the leaf.
    - `members`: for each factor, (group, member) of those that lie along it, by their numbers.
    """

    path: str
    sizes: tuple[int, ...]
    members: tuple[tuple[tuple[int, int], ...], ...]
