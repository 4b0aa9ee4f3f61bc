"""Flows on disk: the settings, and the numbers of the model in the order of its tree. The data are not stored.

The structure of the model is built anew from the settings. A flow that looks at the data (a guided one) needs them
again: `load(path, posterior)`.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from weightscape.core.checks import InputError, require
from weightscape.draws import Header
from weightscape.flow.architecture import Architecture, setting_of
from weightscape.flow.fields import looking_at
from weightscape.flow.flow import Flow
from weightscape.flow.flow_matching import FlowMatching
from weightscape.flow.target import Target
from weightscape.inference.approximation_files import storable
from weightscape.posterior import Model, Posterior


def _stored(flow: Flow) -> dict[str, Any]:
    numbers = jax.tree.leaves(eqx.filter(looking_at(flow.model, None), eqx.is_array))
    return {"method": flow.method, "numbers": tuple(numbers), "solver": flow.solver, "divergence": flow.divergence}


def _rebuild(parts: dict[str, Any], header: Header, posterior: Posterior | None) -> Flow:
    method: FlowMatching = parts["method"]
    require_data(method.architecture, posterior)
    known = standing_for(header) if posterior is None else posterior
    target = Target(known, method.source(known))
    zeros = jnp.zeros((2, target.source.layout.size), target.source.layout.dtype)
    model = method.model(jax.random.key(0), setting_of(method.architecture, target, method.path, zeros, zeros))
    model = filled(looking_at(model, None), parts["numbers"])
    model = looking_at(model, method.architecture.seen(target))
    flow = method.flow(header, posterior, model, target.source)
    return dataclasses.replace(flow, facts=parts["facts"], solver=parts["solver"], divergence=parts["divergence"])


def require_data(architecture: Architecture, posterior: Posterior | None) -> None:
    """Raise where a field looks at data that are not given."""
    if posterior is None and architecture.looks_at_data:
        raise InputError(
            "A flow that looks at the data must be loaded with them, got none. Pass `load(path, posterior)`."
        )


def standing_for(header: Header) -> Posterior:
    """A posterior of the same weights and symmetry, on the rows of the example."""
    assert isinstance(header.model, Model)
    return header.model.condition(header.example)


def filled(model: Any, numbers: tuple[np.ndarray, ...]) -> Any:
    """The model with all its arrays replaced, in the order of its tree."""
    arrays, rest = eqx.partition(model, eqx.is_array)
    leaves, structure = jax.tree.flatten(arrays)
    shapes, came = [leaf.shape for leaf in leaves], [np.shape(array) for array in numbers]
    require(
        shapes == came, "A stored flow must hold the numbers of its model", f"{len(came)} other arrays", "Restore it."
    )
    filled = [jnp.asarray(array, leaf.dtype) for array, leaf in zip(numbers, leaves, strict=True)]
    return eqx.combine(jax.tree.unflatten(structure, filled), rest)


storable("Flow", Flow, _stored, _rebuild)
