"""What a flow over a population learns from: networks, and what it is told about each where it has conditions."""

import jax.numpy as jnp
import numpy as np

from weightscape.core.checks import require
from weightscape.draws import Draws
from weightscape.flow.conditions import Conditions
from weightscape.flow.descent import Examples
from weightscape.flow.encodings import Encoding, Values, require_numbers
from weightscape.flow.training_set import TrainingSet, padded
from weightscape.posterior import Posterior


def known_values(conditions: Conditions | None, posterior: Posterior, draws: Draws | None) -> Values | None:
    """What is known of all networks, chain by chain."""
    return None if conditions is None or draws is None else np.ravel(conditions.values(posterior, draws))


def fitted_encoding(conditions: Conditions | None, values: Values | None, given: TrainingSet) -> Encoding | None:
    """How values are shown, from those of the training networks; those of held-out ones must be known, too."""
    if conditions is None or values is None:
        return None
    _require_known(conditions, values, given)
    return conditions.encoding(values[given.train_rows])


def told_examples(
    given: TrainingSet, batch_size: int, encoding: Encoding | None, values: Values | None
) -> tuple[Examples, Examples]:
    """The training networks, and a batch of those that are held out, each with its context."""
    train, held_out = Examples(jnp.asarray(given.train)), Examples(padded(given.held_out, batch_size))
    if encoding is None or values is None:
        return train, held_out
    contexts = encoding.contexts(values).astype(given.train.dtype)
    return (
        train._replace(contexts=jnp.asarray(contexts[given.train_rows])),
        held_out._replace(contexts=padded(contexts[given.held_out_rows], batch_size)),
    )


def _require_known(conditions: Conditions, values: Values, given: TrainingSet) -> None:
    """Raise where the value of a network that is learned from, or held out, is not finite."""
    noted = conditions.noted
    name = f"What {type(conditions).__name__} says of networks" if noted is None else f"`info[{noted!r}]` of draws"
    require_numbers(name, values)
    used = np.sort(np.concatenate([given.train_rows, given.held_out_rows]))
    unknown = used[~np.isfinite(values[used])]
    which = ", ".join(f"{values[row]} for network {row}" for row in unknown[:3])
    came = f"{which} ({len(unknown)} in all, counted chain by chain from 0)"
    require(len(unknown) == 0, f"{name} must be finite", came, "Leave these networks out.")
