"""Several sets of draws as one, each set with a share of the weight.

    weight of draw i of set k = share_k · w_ki,        Σ_i w_ki = 1,   Σ_k share_k = 1

w_ki are the set's own weights, or 1/n_k. Predictions from the whole are the mixture of the sets' predictions.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import numpy as np
from jaxtyping import ArrayLike

from weightscape.core.checks import require, require_type
from weightscape.core.facts import Facts
from weightscape.core.shares import normalised_shares
from weightscape.draws.draws import Draws
from weightscape.draws.health import Health
from weightscape.draws.weights import draw_weights


def combine(sets: Sequence[Draws], shares: ArrayLike | list | None = None) -> Draws:
    """All draws of sets of one model, in one chain whose weights give each set its share.

    Arguments:
        sets: draws of the same model and scaling, of any numbers of chains and draws. Predictions of different models
            are mixed with `predictive.mix`.
        shares: not negative; they are divided by their sum. None gives every draw the weight it would have if the
            sets were one: each set in proportion to its number of draws.

    What only some of the sets noted of their draws is left out.

    Example:
    >>> both = combine([hmc, ensemble], [0.7, 0.3])                     # doctest: +SKIP

    """
    _check_sets(sets)
    counts = [len(each) for each in sets]
    parts = normalised_shares("`shares` of combine", counts if shares is None else shares, len(sets))
    with np.errstate(divide="ignore"):  # a set without a share has weight zero
        logs = [np.log(share * draw_weights(each)) for each, share in zip(sets, parts, strict=True)]
    join = lambda *leaves: np.concatenate([np.asarray(leaf).reshape(-1, *leaf.shape[2:]) for leaf in leaves])[None]
    noted = set.intersection(*(set(each.info) for each in sets))
    proposals = [each.log_proposal for each in sets]
    first = sets[0]
    return Draws(
        jax.tree.map(join, *(each.params for each in sets)),
        join(*(each.log_density for each in sets)),
        first.model,
        first.scaling,
        first.example,
        {name: join(*(each.info[name] for each in sets)) for name in sorted(noted)},
        join(*logs).astype(np.asarray(first.log_density).dtype),
        None if any(each is None for each in proposals) else join(*proposals),
        Health(1),
        Facts(method="combine", sets=[each.facts.get("method", "unknown") for each in sets], shares=parts.tolist()),
    )


def _check_sets(sets: Sequence[Draws]) -> None:
    require(len(sets) > 0, "`sets` of combine must hold at least one set of draws", 0, "Pass `[draws, others]`.")
    for each in sets:
        asked, remedy = "`sets` of combine must be Draws", "Sample approximations first."
        require_type(isinstance(each, Draws), asked, type(each).__name__, remedy)
    first = sets[0]
    alike = all(bool(eqx.tree_equal((each.model, each.scaling), (first.model, first.scaling))) for each in sets[1:])
    remedy = "Mix their predictions with `predictive.mix`."
    require(alike, "Draws that are combined must be of one model and one scaling", "different ones", remedy)
