"""The non-linear layer: products of features, slot by slot.

    y_c = Σ_{a·b = c} φ_a(A_a x_a) ⊙ B_b x_b,      out_c = C_c y_c

over the pairs of slots whose product lies in slot c; φ is SiLU for slot 0, which no sign changes, and the identity for
the others. With slot 0 alone it is the gated layer SwiGLU (Shazeer 2020). Products of two charged features are how
signs are forgotten, and products with uncharged ones how they are kept.
"""

import equinox as eqx
import jax

from weightscape.core.types import PRNGKey
from weightscape.metanet.charges import Charges, factor_pairs
from weightscape.metanet.linear import SlotLinear, Slots


class Product(eqx.Module):
    """The layer for features of the given slots."""

    left: SlotLinear
    right: SlotLinear
    out: SlotLinear
    pairs: tuple[tuple[tuple[int, int], ...], ...] = eqx.field(static=True)

    @staticmethod
    def of(key: PRNGKey, slots: tuple[Charges, ...], width: int, expansion: int) -> "Product":
        """A random layer with `expansion` · `width` hidden channels."""
        key_left, key_right, key_out = jax.random.split(key, 3)
        hidden = expansion * width
        return Product(
            SlotLinear.of(key_left, len(slots), width, hidden),
            SlotLinear.of(key_right, len(slots), width, hidden),
            SlotLinear.of(key_out, len(slots), hidden, width),
            factor_pairs(slots),
        )

    def __call__(self, x: Slots) -> Slots:
        """The outputs, by slot."""
        left, right = self.left(x), self.right(x)
        left = (jax.nn.silu(left[0]), *left[1:])
        terms = [[left[a] * right[b] for a, b in pairs] for pairs in self.pairs]
        return self.out(tuple(sum(rest, first) for first, *rest in terms))
