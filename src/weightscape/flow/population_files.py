"""Flows over populations on disk: the settings, the sizes of weights, the numbers of the model, what is asked of it."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from weightscape.core.numbers import number
from weightscape.draws import Header
from weightscape.flow.fields import looking_at
from weightscape.flow.flow_files import filled, require_data, standing_for
from weightscape.flow.given import Given, released
from weightscape.flow.population_flow import PopulationFlow
from weightscape.flow.population_matching import PopulationMatching
from weightscape.flow.source import WhitenedSource
from weightscape.flow.sphere_source import SphereSource
from weightscape.flow.target import Target
from weightscape.inference.approximation_files import storable
from weightscape.posterior import Posterior
from weightscape.symmetry import of_function


def _stored(flow: PopulationFlow) -> dict[str, Any]:
    numbers = tuple(jax.tree.leaves(eqx.filter(looking_at(released(flow.model), None), eqx.is_array)))
    asked = {"context": flow.model.context, "strength": flow.model.strength} if isinstance(flow.model, Given) else {}
    assert isinstance(flow.source, WhitenedSource | SphereSource)
    return {"method": flow.method, "numbers": numbers, "scale": flow.source.scale, "reach": flow.reach,
            "solver": flow.solver, "divergence": flow.divergence, **asked}  # fmt: skip


def _rebuild(parts: dict[str, Any], header: Header, posterior: Posterior | None) -> PopulationFlow:
    method: PopulationMatching = parts["method"]
    require_data(method.architecture, posterior)
    known = standing_for(header) if posterior is None else posterior
    symmetry, layout = of_function(known), header.layout()
    source = method.geometry.source(symmetry, layout, jnp.asarray(np.asarray(parts["scale"]), layout.dtype))
    zeros = jnp.zeros((2, layout.size), layout.dtype)
    target = Target(known, source)
    model = filled(looking_at(method.model(jax.random.key(0), symmetry, target, zeros), None), parts["numbers"])
    model = looking_at(model, method.architecture.seen(target))
    if isinstance(model, Given):
        model = dataclasses.replace(model, context=_number(parts["context"]), strength=_number(parts["strength"]))
    flow = method.flow(header, posterior, model, source)
    if "reach" in parts:  # flows that were stored before weights had one may lead anywhere
        flow = dataclasses.replace(flow, reach=jnp.asarray(parts["reach"], layout.dtype))
    return dataclasses.replace(flow, facts=parts["facts"], solver=parts["solver"], divergence=parts["divergence"])


def _number(stored: np.ndarray | None) -> jax.Array | None:
    return None if stored is None else number(stored)


storable("PopulationFlow", PopulationFlow, _stored, _rebuild)
