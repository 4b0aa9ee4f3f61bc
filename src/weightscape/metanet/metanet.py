"""A network that reads weights and writes a number for each, and commutes with their symmetries.

    v(t, g θ) = g v(t, θ)      for every element g of a Symmetry

It is built from the Symmetry alone, for any network: see `features` for how weights become features of units, `block`
for what is done with them. Permutations hold because units have no positions; signs because features carry charges
(`charges`); scales because weights are brought to unit scales first and what is written is brought back:

    v(θ) = s⁻¹ ṽ(s θ),      s the element that gives θ unit scales
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from weightscape.core.checks import require
from weightscape.core.keys import require_key
from weightscape.core.types import PRNGKey, Tree
from weightscape.geometry import unit_scales
from weightscape.metanet.channel_scaling import ChannelScaling
from weightscape.metanet.condition import Condition
from weightscape.metanet.heads import VectorHead, WeightHead
from weightscape.metanet.probes import Probes
from weightscape.metanet.sizes import DEFAULT_SIZES, Sizes
from weightscape.metanet.trunk import Extras, Trunk
from weightscape.symmetry import Symmetry


class Metanet(eqx.Module):
    """A number for each weight, at a time: a velocity, a mask, a new network. Zero at first.

    - `symmetry`: what it commutes with; its layout is that of the weights.
    - `params`: weights of that layout, for their shapes.
    - `sizes`: how large it is.
    - `scaling`: brings weights to order one; none by default.
    - `probes`: looks at the network's values at learned inputs; none by default.
    - `block_type`: the floating type of the blocks, such as `jnp.bfloat16`; that of the weights by default. The first
      and last maps, normalisation and softmax keep full precision.
    - `num_companions`: how many trees like the weights, and moved by the symmetry as these are, it is shown with them:
      a gradient, a former state. Symmetries with scales, which move gradients the other way, have none.

    Example:
    >>> from weightscape import networks, symmetry
    >>> x = jnp.ones((5, 2))
    >>> network = networks.MLP(hidden=(4, 3), outputs=1)
    >>> params = network.init(jax.random.key(0), x)
    >>> field = Metanet(jax.random.key(1), symmetry.discover(network, params, x), params)
    >>> jax.tree.map(jnp.shape, field(0.5, params)) == jax.tree.map(jnp.shape, params)
    True
    """

    trunk: Trunk
    condition: Condition
    head: WeightHead

    def __init__(
        self,
        key: PRNGKey,
        symmetry: Symmetry,
        params: Tree,
        *,
        sizes: Sizes = DEFAULT_SIZES,
        scaling: ChannelScaling | None = None,
        probes: Probes | None = None,
        block_type: DTypeLike | None = None,
        num_companions: int = 0,
    ):
        require_key(key, "Metanet")
        asked, came = "A Metanet with companions must have a symmetry without scales", symmetry.num_scales
        require(not num_companions or not came, asked, came, "Leave `num_companions` at 0.")
        key_trunk, key_condition = jax.random.split(key)
        extras = Extras(scaling, probes, block_type, num_companions)
        self.trunk = Trunk.of(key_trunk, symmetry, params, sizes, extras)
        self.condition = Condition.of(key_condition, sizes.width, timed=True, context_size=sizes.context_size)
        self.head = WeightHead.of(self.trunk.plan, sizes, 1 + num_companions)

    def __call__(
        self,
        time: Float[Array, ""] | float,
        params: Tree,
        context: Array | None = None,
        *,
        companions: tuple[Tree, ...] = (),
    ) -> Tree:
        """The numbers, as a tree like `params`."""
        symmetry = self.trunk.features.symmetry
        form = unit_scales(symmetry, params)
        parts = self.trunk.parts(form.params, companions)
        hidden = self.trunk(self.condition(jnp.asarray(time), context), form.params, parts)
        written = self.trunk.features.join(self.head(hidden, parts))
        if symmetry.num_scales:
            written = symmetry.apply(written, symmetry.invert(form.element))
        return jax.tree.map(lambda new, old: new.astype(jnp.result_type(old)), written, params)


class Reader(eqx.Module):
    """One vector for each network: a property, or scores of classes. Invariant; zero at first.

    - `num_outputs`: the length of the vector.
    - the others: as those of `Metanet`.

    Example:
    >>> from weightscape import networks, symmetry
    >>> x = jnp.ones((5, 2))
    >>> network = networks.MLP(hidden=(4, 3), outputs=1)
    >>> params = network.init(jax.random.key(0), x)
    >>> reader = Reader(jax.random.key(1), symmetry.discover(network, params, x), params, num_outputs=2)
    >>> reader(params).shape
    (2,)
    """

    trunk: Trunk
    condition: Condition
    head: VectorHead

    def __init__(
        self,
        key: PRNGKey,
        symmetry: Symmetry,
        params: Tree,
        *,
        num_outputs: int,
        sizes: Sizes = DEFAULT_SIZES,
        scaling: ChannelScaling | None = None,
        probes: Probes | None = None,
        block_type: DTypeLike | None = None,
    ):
        require_key(key, "Reader")
        key_trunk, key_condition, key_head = jax.random.split(key, 3)
        self.trunk = Trunk.of(key_trunk, symmetry, params, sizes, Extras(scaling, probes, block_type))
        self.condition = Condition.of(key_condition, sizes.width, timed=False, context_size=sizes.context_size)
        self.head = VectorHead.of(key_head, self.trunk.plan, sizes, num_outputs)

    def __call__(self, params: Tree, context: Array | None = None) -> Float[Array, " output"]:
        """The vector."""
        form = unit_scales(self.trunk.features.symmetry, params)
        return self.head(self.trunk(self.condition(None, context), form.params, self.trunk.parts(form.params)))
