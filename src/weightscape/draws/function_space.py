"""Function space: what draws say at probe inputs.

The weights of a network mean little one by one: hidden units change places, and signs flip, without a change of the
function. So chains are compared by their functions at some inputs x, the *probes*:

    regression          E[y | x, θ], in original units
    classification      p(y = c | x, θ) for each class c

Logits would not do for classes: a shift of all logits changes no probability, but looks like a chain that drifts. Ranks
of probabilities are those of their logarithms, so rank-based diagnostics lose nothing.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from weightscape.core.checks import require, require_finite, require_type, shape_of
from weightscape.draws.header import Header
from weightscape.draws.streaming import stream
from weightscape.likelihoods import ClassificationLikelihood, RegressionLikelihood
from weightscape.posterior import Joint, Parameters


def evaluate_functions(
    header: Header, params: Parameters, probes: Float[Array, "point ..."]
) -> Float[np.ndarray, "chain draw point output"]:
    """The function of every draw at the probes: means in original units, or probabilities of classes.

    - `params`: parameters with leading axes (chain, draw); they are read stretch by stretch.
    - `probes`: inputs in original units.
    """
    x = probes if header.scaling is None else header.scaling.inputs(probes)
    num_draws = np.shape(jax.tree.leaves(params)[0])[1]
    values = np.empty(())
    for points, draws, part in stream(_function_value, header.model, params, x):
        if values.ndim == 0:
            values = np.empty((len(part), num_draws, len(x), part.shape[3]), part.dtype)
        values[:, draws, points] = part if header.scaling is None else header.scaling.unscale_mean(jnp.asarray(part))
    return values


def check_probes(x: ArrayLike | list | None, header: Header) -> Float[Array, "point ..."]:
    """Probes as an array shaped like the training inputs; the example's own inputs where there are none."""
    like = header.example.x
    if x is None:
        return like
    inputs = np.asarray(x)
    remedy = "Pass numbers; the loaders of `weightscape.data` encode text columns."
    require_type(inputs.dtype.kind in "fiub", "Probes must hold numbers", f"type {inputs.dtype}", remedy)
    asked = f"Probes must have shape (point, {', '.join(str(size) for size in shape_of(like)[1:])})"
    fits = inputs.ndim == like.ndim and inputs.shape[1:] == like.shape[1:] and len(inputs) > 0
    require(fits, asked, shape_of(inputs), "Pass some inputs like those in training, such as `dataset.test.x[:16]`.")
    require_finite("Probes", inputs)
    return jnp.asarray(inputs, like.dtype)


def _function_value(model: Joint, parameters: Parameters, x: Float[Array, "point ..."]) -> Float[Array, "point output"]:
    outputs, likelihood = model.network.apply(parameters.network, x), model.likelihood
    if isinstance(likelihood, ClassificationLikelihood):
        return likelihood.probabilities(outputs)
    assert isinstance(likelihood, RegressionLikelihood)
    return likelihood.mean(outputs, parameters.likelihood)
