"""The population of a problem: trained once, split by run, and re-based for fields that know no symmetry."""

import dataclasses
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
from experiments.thesis.settings import PLAIN, Configuration, Problem

import weightscape as ws
from weightscape.core import JsonLines
from weightscape.geometry import unit_scales
from weightscape.inference.point import RunSplit
from weightscape.symmetry import of_function

_HELD_OUT = 0.2


def population(folder: Path, problem: Problem) -> RunSplit:
    """Networks to learn from, and those of other runs; what is in the folder is gone on with."""
    posterior, kept = problem.training_posterior(), {"store": folder / "population", "resume": True}
    runs = problem.population.run(jax.random.key(0), posterior, **kept, progress=JsonLines(sys.stderr))
    return ws.split_runs(runs, _HELD_OUT)


def shown(train: ws.Draws, problem: Problem, configuration: Configuration) -> ws.Draws:
    """The networks as the flow of a configuration is shown them."""
    if configuration.field != PLAIN or not configuration.aligned:
        return train
    return rebased(train, problem, normalised=configuration.geometry != "euclidean")


def rebased(draws: ws.Draws, problem: Problem, *, normalised: bool) -> ws.Draws:
    """All networks moved close to the first by permutations, with unit scales where these are what is learned."""
    symmetry = of_function(problem.posterior())
    if normalised:
        params = _normalised(symmetry, jax.tree.map(jnp.asarray, draws.params))
        draws = dataclasses.replace(draws, params=jax.device_get(params))
    return ws.geometry.rebase(draws, symmetry=symmetry.without_scaling())


@eqx.filter_jit
def _normalised(symmetry: ws.symmetry.Symmetry, params: ws.Parameters) -> ws.Parameters:
    return jax.vmap(jax.vmap(lambda one: unit_scales(symmetry, one, with_shifts=True).params))(params)
