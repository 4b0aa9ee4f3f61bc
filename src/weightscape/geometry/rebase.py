"""Re-basing: every draw replaced by the equivalent network that is closest to a reference.

    θ_i ← g_i θ_i,        g_i = argmin_g ‖reference − g θ_i‖

The draws of a posterior lie scattered over all copies of each mode. Re-based they lie around one of them, where means,
variances and distances of weights say something. Functions and densities are unchanged, as the elements leave both
alone.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from weightscape.core import tree
from weightscape.core.bar import default_progress
from weightscape.core.checks import require, require_type
from weightscape.core.keys import require_key
from weightscape.core.progress import Progress
from weightscape.core.types import PRNGKey, Scalar, Tree
from weightscape.draws import Draws
from weightscape.geometry.many_networks import ManyNetworks
from weightscape.geometry.match import Matching
from weightscape.geometry.references import FirstDraw, OneNetwork, Reference
from weightscape.geometry.weight_matching import WeightMatching
from weightscape.posterior import Joint, Parameters
from weightscape.symmetry import Element, Symmetry
from weightscape.symmetry.discover import of_draws


def rebase(
    draws: Draws,
    reference: Draws | Reference | Tree | None = None,
    symmetry: Symmetry | None = None,
    *,
    matching: Matching | None = None,
    key: PRNGKey | None = None,
    progress: Progress | None = None,
) -> Draws:
    """The draws, each moved close to the reference by an element of its own.

    - `reference`: weights of the network, draws that hold one network, or `FirstDraw()`, `MovingMean()`, `Centre()`;
      None is the first draw.
    - `symmetry`: of the network, or of all parameters; None finds the one that the prior shares.
    - `matching`: how elements are found; None is `WeightMatching()`.
    - `key`: for the restarts of a matching. Without it they are the same at each call.
    - `progress`: what to report to; None shows a bar on a terminal.

    Predictions are unchanged to rounding, and so is log p(D, θ), which is kept as it is.
    """
    networks, elements = _matched(draws, reference, symmetry, matching, key, progress)
    moved = networks.moved(elements)
    whole = isinstance(moved, Parameters)
    return eqx.tree_at(lambda d: d.params if whole else d.params.network, draws, moved)


def rebase_elements(
    draws: Draws,
    reference: Draws | Reference | Tree | None = None,
    symmetry: Symmetry | None = None,
    *,
    matching: Matching | None = None,
    key: PRNGKey | None = None,
    progress: Progress | None = None,
) -> Element:
    """The elements by which `rebase` moves the draws, with leading axes (chain, draw)."""
    networks, elements = _matched(draws, reference, symmetry, matching, key, progress)
    return jax.tree.map(lambda leaf: leaf.reshape(*networks.shape, *leaf.shape[1:]), elements)


def _matched(
    draws: Draws,
    reference: Any,
    symmetry: Symmetry | None,
    matching: Matching | None,
    key: PRNGKey | None,
    progress: Progress | None,
) -> tuple[ManyNetworks, Element]:
    _require_types(draws, symmetry, matching)
    if key is not None:
        require_key(key, "rebase")
    key_match, key_check = jax.random.split(jax.random.key(0) if key is None else key)
    acting = of_draws(draws) if symmetry is None else symmetry
    params = _acted_on(draws, acting)
    if symmetry is not None:
        _require_same_density(key_check, draws, symmetry)
    networks = ManyNetworks(params, acting, matching or WeightMatching(), default_progress(progress))
    return networks, _as_reference(reference, acting).elements(key_match, networks)


def _require_types(draws: Any, symmetry: Any, matching: Any) -> None:
    asked, remedy = "`draws` of rebase must be Draws", "Use `WeightMatching().match` for a tree of weights."
    require_type(isinstance(draws, Draws), asked, type(draws).__name__, remedy)
    known = symmetry is None or isinstance(symmetry, Symmetry)
    require_type(known, "`symmetry` of rebase must be a Symmetry", type(symmetry).__name__, "Make it by `discover`.")
    known = matching is None or isinstance(matching, Matching)
    remedy = "Pass one such as `WeightMatching()`."
    require_type(known, "`matching` of rebase must be a Matching", type(matching).__name__, remedy)


def _acted_on(draws: Draws, symmetry: Symmetry) -> Tree:
    """All parameters of the draws, or the weights alone: whatever the symmetry acts on."""
    whole = jax.tree.structure(draws.params) == symmetry.layout.structure
    params = draws.params if whole else draws.params.network
    same = jax.tree.structure(params) == symmetry.layout.structure and _shapes(params, 2) == symmetry.layout.shapes
    asked = f"`symmetry` of rebase must act on weights of the shapes {_shapes(draws.params.network, 2)}"
    require(same, asked, symmetry.layout.shapes, "Leave it out, or discover it for the network of the draws.")
    return params


def _shapes(params: Tree, skipped: int) -> tuple[tuple[int, ...], ...]:
    return tuple(np.shape(leaf)[skipped:] for leaf in jax.tree.leaves(params))


def _as_reference(reference: Any, symmetry: Symmetry) -> Reference:
    if reference is None:
        return FirstDraw()
    if isinstance(reference, Reference):
        return reference
    if isinstance(reference, Draws):
        asked, remedy = "Draws as `reference` of rebase must hold one network", "Index them, as in `draws[0, -1]`."
        require(len(reference) == 1, asked, f"{len(reference)}", remedy)
        reference = jax.tree.map(lambda leaf: leaf[0, 0], reference.params)
    return OneNetwork(_of_layout(reference, symmetry))


def _of_layout(weights: Tree, symmetry: Symmetry) -> Tree:
    """Weights as the symmetry has them: those of the network alone, or with other parameters, which are set to zero.

    Zeros as a reference favour no permutation and no sign.
    """
    zeros = jax.tree.unflatten(symmetry.layout.structure, list(map(jnp.zeros, symmetry.layout.shapes)))
    if isinstance(zeros, Parameters) and not isinstance(weights, Parameters):
        weights = zeros._replace(network=weights)
    if isinstance(weights, Parameters) and not isinstance(zeros, Parameters):
        weights = weights.network
    same = jax.tree.structure(weights) == symmetry.layout.structure and _shapes(weights, 0) == symmetry.layout.shapes
    asked = f"`reference` of rebase must be weights of the shapes {symmetry.layout.shapes}"
    came = f"{tuple(tree.named_leaves(weights))} of the shapes {_shapes(weights, 0)}"
    require(same, asked, came, "Pass a network of the same architecture, or a reference such as `FirstDraw()`.")
    return jax.tree.map(jnp.asarray, weights)


def _require_same_density(key: PRNGKey, draws: Draws, symmetry: Symmetry) -> None:
    """Raise where the prior tells equivalent networks apart: then log p(D, θ) of the draws would no longer hold."""
    before = jax.tree.map(lambda leaf: jnp.asarray(leaf[0, 0]), draws.params)
    whole = jax.tree.structure(before) == symmetry.layout.structure
    moved = symmetry.apply(before if whole else before.network, symmetry.random(key))
    after = moved if whole else before._replace(network=moved)
    first, second = (float(_log_prior(draws.model, params)) for params in (before, after))
    asked = "`symmetry` of rebase must leave the prior unchanged"
    came = f"a log prior of {second:.6g} where it was {first:.6g}"
    same = abs(first - second) <= 1e-4 * (1 + abs(first))
    require(same, asked, came, "Leave it out, or pass `symmetry.without_scaling()`.")


@eqx.filter_jit
def _log_prior(model: Joint, params: Parameters) -> Scalar:
    placed = model.place(model.unplace(params))
    return placed.log_prior + placed.log_jacobian
