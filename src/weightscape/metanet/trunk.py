"""What all metanets share: weights to features, through the blocks."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from weightscape.core.types import PRNGKey, Tree
from weightscape.metanet.block import Block, Hidden
from weightscape.metanet.channel_scaling import ChannelScaling
from weightscape.metanet.embedding import Embedding
from weightscape.metanet.features import Features
from weightscape.metanet.fixed import Fixed
from weightscape.metanet.plan import Plan
from weightscape.metanet.probes import ProbeEmbedding, Probes
from weightscape.metanet.sizes import Sizes
from weightscape.symmetry import Symmetry


class Extras(eqx.Module):
    """What a metanet may be given besides its sizes: see `Metanet`."""

    scaling: ChannelScaling | None = None
    probes: Probes | None = None
    block_type: DTypeLike | None = eqx.field(static=True, default=None)
    num_companions: int = eqx.field(static=True, default=0)


class Trunk(eqx.Module):
    """Embedding and blocks."""

    features: Features
    scaling: Fixed
    embedding: Embedding
    probes: ProbeEmbedding | None
    blocks: tuple[Block, ...]
    plan: Plan = eqx.field(static=True)
    block_type: DTypeLike | None = eqx.field(static=True)

    @staticmethod
    def of(key: PRNGKey, symmetry: Symmetry, params: Tree, sizes: Sizes, extras: Extras) -> "Trunk":
        """A random trunk."""
        key_embedding, key_probes, key_blocks = jax.random.split(key, 3)
        features = Features(symmetry)
        features.split(params)
        plan = Plan.of(symmetry, features.places)
        probes = extras.probes
        return Trunk(
            features,
            Fixed(ChannelScaling.none(features.places) if extras.scaling is None else extras.scaling),
            Embedding.of(key_embedding, plan, sizes, 1 + extras.num_companions),
            None if probes is None else ProbeEmbedding.of(key_probes, probes, symmetry, plan, sizes, params),
            tuple(Block.of(k, plan, sizes) for k in jax.random.split(key_blocks, sizes.num_blocks)),
            plan,
            extras.block_type,
        )

    def __call__(
        self, condition: Float[Array, " condition"], params: Tree, parts: tuple[Float[Array, "..."], ...]
    ) -> Hidden:
        """The features of tokens and edges after the last block, from weights of unit scales and their `parts`."""
        hidden = self.embedding(parts)
        if self.probes is not None:
            hidden = self.probes(params, hidden)
        outer_type = hidden.tokens[0].dtype
        blocks, condition, hidden = _cast((self.blocks, condition, hidden), self.block_type)
        for block in blocks:
            hidden = block(condition, hidden)
        return _cast(hidden, outer_type)

    def parts(self, params: Tree, companions: tuple[Tree, ...] = ()) -> tuple[Float[Array, "..."], ...]:
        """The scaled weights of every place, and what their companions hold there, as more channels."""
        own = self.scaling.value(self.features.split(params))
        others = [self.features.split(companion) for companion in companions]
        return tuple(jnp.concatenate(each, axis=-1) for each in zip(own, *others, strict=True))


def _cast(tree: Tree, dtype: DTypeLike | None) -> Tree:
    """The tree with its floating arrays in another type; as it is where that is None."""
    cast = lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf
    return tree if dtype is None else jax.tree.map(cast, tree)
