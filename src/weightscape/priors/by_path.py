"""Different priors for different leaves, chosen by a pattern over their paths.

p(θ, τ) = Π_k p_k(θ_k, τ_k),      θ_k the leaves whose path matches pattern k first
"""

import fnmatch
from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp

from weightscape.core import tree
from weightscape.core.checks import require
from weightscape.core.config import registered
from weightscape.core.types import PRNGKey, Scalar, Tree
from weightscape.priors.prior import NOTHING, Constrained, Coordinates, Prior, RealPrior

Parts = tuple[tuple[str, Prior], ...]


def _ordered(parts: Mapping[str, Prior] | Parts) -> Parts:
    return tuple(parts.items()) if isinstance(parts, Mapping) else parts


@registered("priors.ByPath")
class ByPath(Prior):
    """A prior for each pattern; a leaf belongs to the first pattern that its path matches.

    - `parts`: patterns such as `"layer0/weight"`, `"*/bias"` or `"*"`, each with its prior. Every leaf must match a
      pattern, and every pattern must match a leaf.

    Example:
    >>> from weightscape.priors import Normal
    >>> prior = ByPath({"*/bias": Normal(0.1), "*": Normal(1.0)})
    """

    parts: Parts = eqx.field(converter=_ordered)

    @property
    def is_discrete(self) -> bool:
        return any(part.is_discrete for _, part in self.parts)

    def log_density(self, params: Tree, latent: Tree = NOTHING) -> Scalar:
        latents = latent or {}
        densities = [
            part.log_density(leaves, latents.get(pattern, NOTHING)) for pattern, part, leaves in self._split(params)
        ]
        return jnp.sum(jnp.stack(densities))

    def sample(self, key: PRNGKey, params_like: Tree) -> Tree:
        split = self._split(params_like)
        keys = jax.random.split(key, len(split))
        return _join(params_like, [part.sample(keys[i], leaves) for i, (_, part, leaves) in enumerate(split)])

    def sample_coordinates(self, key: PRNGKey, params_like: Tree) -> Coordinates:
        split = self._split(params_like)
        keys = jax.random.split(key, len(split))
        drawn = [part.sample_coordinates(keys[i], leaves) for i, (_, part, leaves) in enumerate(split)]
        return self._gather(params_like, drawn)

    def coordinates(self, params: Tree, latent: Tree | None = None) -> Coordinates:
        latents = latent or {}  # none, or the empty tree of a prior without latent scales
        absent = None if latent is None else NOTHING
        made = [part.coordinates(leaves, latents.get(pattern, absent)) for pattern, part, leaves in self._split(params)]
        return self._gather(params, made)

    def constrain(self, coordinates: Coordinates) -> Constrained:
        latents = coordinates.latent or {}
        placed = [
            part.constrain(Coordinates(leaves, latents.get(pattern, NOTHING)))
            for pattern, part, leaves in self._split(coordinates.params)
        ]
        gathered = self._gather(coordinates.params, [Coordinates(one.params, one.latent) for one in placed])
        return Constrained(*gathered, jnp.sum(jnp.stack([one.log_jacobian for one in placed])))

    def _split(self, params: Tree) -> list[tuple[str, Prior, dict[str, Tree]]]:
        """The leaves of each pattern, by path."""
        named = tree.named_leaves(params)
        owner = {path: next((p for p, _ in self.parts if fnmatch.fnmatchcase(path, p)), None) for path in named}
        orphans = [path for path, pattern in owner.items() if pattern is None]
        require(not orphans, "Every parameter must match a pattern of ByPath", f"none for {', '.join(orphans)}",
                'Add a last pattern "*".')  # fmt: skip
        idle = [pattern for pattern, _ in self.parts if pattern not in owner.values()]
        came = f"{', '.join(map(repr, idle))} without a match of its own"
        require(not idle, "Every pattern of ByPath must match a parameter", came, f"Parameters: {', '.join(named)}.")
        return [
            (pattern, part, {path: leaf for path, leaf in named.items() if owner[path] == pattern})
            for pattern, part in self.parts
        ]

    def _gather(self, like: Tree, made: list[Coordinates]) -> Coordinates:
        latents = {
            pattern: one.latent for (pattern, _), one in zip(self.parts, made, strict=True) if one.latent != NOTHING
        }
        return Coordinates(_join(like, [one.params for one in made]), latents or NOTHING)


def prior_at(prior: Prior, path: str) -> Prior:
    """The prior of the leaf at `path`: the prior itself, or the part that `ByPath` gives it."""
    while isinstance(prior, ByPath):
        prior = next(part for pattern, part in prior.parts if fnmatch.fnmatchcase(path, pattern))
    return prior


def is_own_coordinate(prior: Prior, path: str) -> bool:
    """Whether the weights at `path` are what samplers move, with no latent scale in between."""
    return isinstance(prior_at(prior, path), RealPrior)


def _join(like: Tree, parts: list[dict[str, Tree]]) -> Tree:
    merged = {path: leaf for part in parts for path, leaf in part.items()}
    return jax.tree.unflatten(jax.tree.structure(like), [merged[path] for path in tree.named_leaves(like)])
