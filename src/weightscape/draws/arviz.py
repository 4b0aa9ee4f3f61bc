"""Draws as ArviZ knows them: a DataTree, so that its summaries and plots work.

posterior         the parameters under dotted names, and `outputs`: the function at the probes (function space)
sample_stats      what the method noted of each draw, under ArviZ's names where it has one
constant_data     `x`: the probes, in original units
"""

from typing import Any

import arviz_base
import numpy as np
from jaxtyping import ArrayLike

from weightscape.core import tree
from weightscape.draws.function_space import check_probes, evaluate_functions
from weightscape.draws.header import Header
from weightscape.draws.sampled import Sampled

STANDARD_NAMES = {
    "acceptance": "acceptance_rate",
    "is_divergent": "diverging",
    "num_leapfrog": "n_steps",
}
"""What ArviZ calls our notes; others keep their names, of which `energy`, `step_size`, `tree_depth` are ArviZ's too."""


def to_tree(sampled: Sampled, header: Header, x: ArrayLike | list | None) -> Any:
    """A DataTree of draws with their functions at the probes `x`, or at the example's inputs."""
    probes = check_probes(x, header)
    outputs = evaluate_functions(header, sampled.params, probes)
    # Slashes are paths between groups in a DataTree, so names are joined by dots there.
    leaves = {name.replace("/", "."): np.asarray(leaf) for name, leaf in tree.named_leaves(sampled.params).items()}
    groups = {
        "posterior": {"outputs": outputs, **leaves},
        "sample_stats": _sample_stats(sampled),
        "constant_data": {"x": np.asarray(probes)},
    }
    input_axes = ["input"] if probes.ndim == 2 else [f"input_axis_{i}" for i in range(probes.ndim - 1)]
    dims = {"outputs": ["probe", "output"], "x": ["probe", *input_axes]}
    attributes = {"posterior": {"inference_library": "weightscape", "outputs": _meaning(header)}}
    # ArviZ warns of more chains than draws, which is how an ensemble looks.
    return arviz_base.from_dict(groups, dims=dims, attrs=attributes, check_conventions=False)


def _sample_stats(sampled: Sampled) -> dict[str, np.ndarray]:
    stats = {"lp": np.asarray(sampled.log_density)}
    stats |= {STANDARD_NAMES.get(name, name): np.asarray(leaf) for name, leaf in sampled.info.items()}
    densities = {"log_weights": sampled.log_weights, "log_proposal": sampled.log_proposal}
    return stats | {name: np.asarray(leaf) for name, leaf in densities.items() if leaf is not None}


def _meaning(header: Header) -> str:
    if header.model.likelihood.task == "classification":
        return "probability of each class at each probe"
    return "mean of the target at each probe, in original units"
