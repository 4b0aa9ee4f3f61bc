"""A network of seven weights with exact, independent draws of its posterior, and flows that train on it in seconds."""

import functools

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from tests.metanet.examples import SMALL

import weightscape as ws
from weightscape.draws import Header
from weightscape.flow.architecture import setting_of
from weightscape.flow.target import Target
from weightscape.metanet import Sizes
from weightscape.metanet.fixed import split_trained

NUM_CHAINS, NUM_DRAWS = 20, 50
NUM_TRIED = 80_000
SIZES = Sizes(width=8, edge_width=4, num_blocks=0, num_heads=2)
with jax.enable_x64(True):  # numbers of settings keep their precision
    PRIORS = {"normal": ws.priors.Normal(1.0), "student": ws.priors.StudentT(degrees=5.0, scale=0.8)}
    METHOD = ws.FlowMatching(
        num_steps=400,
        batch_size=64,
        learning_rate=1e-2,
        average=0.98,
        architecture=ws.flow.Equivariant(SIZES, num_leapfrog=0),
        solver=ws.flow.FixedSteps(6, diffrax.Tsit5()),
        gap_every=0,
    )
DEEP = SMALL
"""A metanet with a block, which takes longer to compile."""


def posterior(prior="normal"):
    """Two tanh units on four points."""
    x = np.array([[-1.5], [-0.5], [0.5], [1.5]])
    y = np.array([[-1.0], [-0.6], [0.7], [1.1]])
    network = ws.networks.MLP(hidden=(2,), activation="tanh")
    return ws.Model(network, ws.likelihoods.Gaussian(0.5), PRIORS[prior]).condition(ws.Batch(x, y))


@functools.cache
def accepted(prior="normal"):
    """Positions accepted from the prior with probability L / max L, the evidence that their share tells, its error."""
    with jax.enable_x64(True):
        target = posterior(prior)
        positions = jax.vmap(target.sample_prior_position)(jax.random.split(jax.random.key(11), NUM_TRIED))
        log_likelihood = np.asarray(jax.jit(jax.vmap(target.log_likelihood))(positions))
    most = -4 * np.log(0.5 * np.sqrt(2 * np.pi))
    kept = np.random.default_rng(0).uniform(size=NUM_TRIED) < np.exp(log_likelihood - most)
    log_evidence, error = np.log(kept.mean()) + most, np.sqrt((1 - kept.mean()) / kept.sum())
    return jax.tree.map(lambda leaf: np.asarray(leaf)[kept], positions), log_evidence, error


def draws(prior="normal"):
    """Draws of the posterior, as chains."""
    target, shape = posterior(prior), (NUM_CHAINS, NUM_DRAWS)
    rows = jax.tree.map(lambda leaf: jnp.asarray(leaf[: NUM_CHAINS * NUM_DRAWS], target.x.dtype), accepted(prior)[0])
    log_density = jax.jit(jax.vmap(target.log_density))(rows)
    params = jax.vmap(target.constrain)(rows)
    fold = lambda leaf: np.asarray(leaf).reshape(*shape, *leaf.shape[1:])
    return ws.Draws(jax.tree.map(fold, params), fold(log_density), *Header.of(target))


def untrained(method, prior="normal"):
    """The flow of a method before its training."""
    target = Target(posterior(prior), method.source(posterior(prior)))
    z = np.asarray(jax.vmap(jax.vmap(target.source.vector))(draws(prior).positions()))[0]
    setting = setting_of(method.architecture, target, method.path, jnp.asarray(z), target.gradients(z))
    model = method.model(jax.random.key(5), setting)
    return method.flow(Header.of(target.posterior), target.posterior, model, target.source)


def shaken(flow, size=0.05):
    """The flow with all trained numbers of its model moved, so that none is zero."""
    numbers, rest = split_trained(flow.model)
    moved = jax.tree.map(
        lambda leaf: leaf + size * jnp.cos(3.0 * jnp.arange(leaf.size, dtype=leaf.dtype)).reshape(leaf.shape), numbers
    )
    return eqx.tree_at(lambda flow: flow.model, flow, eqx.combine(moved, rest))
