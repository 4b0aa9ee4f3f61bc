"""Discovery: the symmetry of any network, read off its program.

    f(x; g θ) = f(x; θ)

`apply` is traced to a program, and every axis of every parameter is followed through it (`tracer.py`). Axes that always
lie in the same places are the units of one group. What produces and what consumes the units is known, and from the
degrees of all operations in between (`degrees.py`) whether they may be rescaled or flipped. Operations that are not
understood only ever lose symmetry, and what is found is checked numerically (`confirm.py`).

A layer of one unit has nothing to permute, and is a group where its unit may be rescaled or flipped.

What is not found: permutations of the entries of one attention head alone (all heads share theirs), flips of an LSTM
whose gates are an axis of their own, and the unit of a layer of one where its axis is merged with others or repeated.

Differs from Ainsworth, Hayase & Srinivasa (2023), who ask for a specification of each architecture.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from weightscape.core.checks import require_type
from weightscape.core.layout import Layout
from weightscape.core.types import Tree
from weightscape.draws import Draws, Header
from weightscape.networks import Network
from weightscape.posterior import Position, Posterior
from weightscape.symmetry.assemble import groups_of, leaf_factors, trimmed
from weightscape.symmetry.confirm import confirmed
from weightscape.symmetry.symmetry import Symmetry
from weightscape.symmetry.tracer import follow

_MOST_ROWS = 16
"""Rows of data at which a density is checked."""


def discover(network: Network | Posterior, params: Tree | None = None, x: Any = None) -> Symmetry:
    """The symmetry of a network, or of a posterior.

    - `network`: a network, with weights `params` and inputs `x`, values or shapes. Elements act on trees like `params`.
    - Or a posterior, alone: then elements act on positions, and leave log p(D, θ) unchanged, the prior included. Latent
      variables of the prior move with the weights.

    Example:
    >>> import jax, weightscape as ws
    >>> network, x = ws.networks.MLP(hidden=(3,), activation="tanh", outputs=1), jax.numpy.ones((2, 2))
    >>> print(discover(network, network.init(jax.random.key(0), x), x).groups[0].kinds)
    ('permutation', 'sign')
    """
    if isinstance(network, Posterior):
        return _of_posterior(network)
    remedy = "Pass a Network, with `ws.networks.Function(init, apply)` around a pair of functions, or a Posterior."
    require_type(
        isinstance(network, Network), "`network` of discover must be a Network", type(network).__name__, remedy
    )
    missing = [name for name, value in (("params", params), ("x", x)) if value is None]
    require_type(
        not missing, "`params` and `x` of discover must be given", f"no {' and no '.join(missing)}", "Pass both."
    )
    return symmetry_of(lambda weights, inputs: network.apply(weights, inputs), params, x)


def of_draws(draws: Draws) -> Symmetry:
    """The symmetry of the networks in draws that their prior shares. Elements act on `draws.params`."""
    model, header = draws.model, Header(draws.model, draws.scaling, draws.example)

    def function(position: Position, x: Any) -> Any:
        placed = model.place(position)
        outputs = model.network.apply(placed.parameters.network, x)
        return outputs, placed.log_prior, placed.log_jacobian, placed.parameters.likelihood

    one = jax.tree.map(lambda leaf: jnp.asarray(leaf[0, 0]), draws.params)
    # Parameters move as positions do: coordinates rescale each weight on its own, or mix weights, which then stay.
    return symmetry_of(function, model.unplace(one), header.standardised_example())


def of_function(posterior: Posterior) -> Symmetry:
    """The symmetry of a posterior's networks as functions, whatever its prior says. Elements act on positions."""
    model = posterior.model

    def function(position: Position, x: Any) -> Any:
        params = model.place(position).parameters
        return model.network.apply(params.network, x), params.likelihood

    return symmetry_of(function, posterior.start_position(jax.random.key(0)), posterior.x[:_MOST_ROWS])


def symmetry_of(function: Callable[[Tree, Any], Any], params: Tree, inputs: Any) -> Symmetry:
    """The changes to `params` that leave `function(params, inputs)`, any tree of arrays, unchanged."""
    ledger, factorisation = follow(function, params, inputs)
    groups = groups_of(ledger, factorisation)
    names = dict.fromkeys(name for name, _ in ledger.lost)
    lost = tuple((name, tuple(sorted({path for by, path in ledger.lost if by == name}))) for name in names)
    groups, leaves = trimmed(groups, leaf_factors(groups, factorisation))
    proposed = Symmetry(groups, leaves, Layout.of(params), lost)
    return confirmed(proposed, function, params, inputs) if groups else proposed


def _of_posterior(posterior: Posterior) -> Symmetry:
    rows = tuple(data[:_MOST_ROWS] for data in (posterior.x, posterior.y))

    def log_density(position: Position, data: tuple) -> Any:
        return eqx.tree_at(lambda p: (p.x, p.y), posterior, data).log_density(position)

    return symmetry_of(log_density, posterior.start_position(jax.random.key(0)), rows)
