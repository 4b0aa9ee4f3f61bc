"""Von Mises–Fisher distributions on S², alone and as units of a network, with a flow to them in closed form.

    log p(x) = κ ⟨μ, x⟩ + log κ − log(4π sinh κ),     E x = A μ,     E x xᵀ = (A/κ)(1 − μ μᵀ) + (1 − 2A/κ) μ μᵀ

with A = coth κ − 1/κ. Only u = ⟨μ, x⟩ must move. For p_t = vMF(μ, κt), with k = κt and F the distribution of u,

    F = (e^{ku} − e^{−k}) / (2 sinh k),      du/dt = −κ (∂F/∂k) / (∂F/∂u),      v = du/dt (μ − u x) / (1 − u²).
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import weightscape as ws
from weightscape.draws import Header

MEANS = np.array([[0.6, 0.0, 0.8], [0.0, -1.0, 0.0]])
CONCENTRATIONS = np.array([2.5, 1.5])


def log_density(x, mean, concentration):
    return concentration * x @ mean + np.log(concentration / (4 * np.pi * np.sinh(concentration)))


def moments(mean, concentration):
    size = 1 / np.tanh(concentration) - 1 / concentration
    along, across = 1 - 2 * size / concentration, size / concentration
    outer = np.outer(mean, mean)
    return size * mean, across * (np.eye(3) - outer) + along * outer


def sample(generator, mean, concentration, count):
    """By the quantiles of u, and a direction across μ."""
    u = np.log1p(generator.uniform(size=count) * np.expm1(2 * concentration)) / concentration - 1
    across = generator.normal(size=(count, 3))
    across -= (across @ mean)[:, None] * mean
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    return u[:, None] * mean + np.sqrt(1 - u**2)[:, None] * across


def quadrature(mean, num_heights=40, num_angles=4):
    """Points of the sphere around μ, and weights that integrate the uniform distribution."""
    heights, shares = np.polynomial.legendre.leggauss(num_heights)
    u, angle = np.meshgrid(heights, 2 * np.pi * np.arange(num_angles) / num_angles, indexing="ij")
    first, second = np.linalg.svd(mean[None])[2][1:]
    across = np.cos(angle)[..., None] * first + np.sin(angle)[..., None] * second
    points = u[..., None] * mean + np.sqrt(1 - u**2)[..., None] * across
    return points.reshape(-1, 3), np.repeat(shares, num_angles) / (2 * num_angles)


def velocity(time, x, mean, concentration):
    """v, for rows x of norm one; the limit at time 0."""
    mean, k = jnp.asarray(mean), jnp.maximum(concentration * time, 1e-3)
    u = x @ mean
    slope = k * jnp.exp(k * u) / (2 * jnp.sinh(k))
    share = (jnp.exp(k * u) - jnp.exp(-k)) / (2 * jnp.sinh(k))
    change = (u * jnp.exp(k * u) + jnp.exp(-k)) / (2 * jnp.sinh(k)) - share / jnp.tanh(k)
    # du/dt over 1 − u², whose limits stand for it at the poles and at time 0.
    ratio = jnp.where(1 - u**2 > 1e-9, -change / slope / jnp.maximum(1 - u**2, 1e-9), 0.5)
    return concentration * jnp.where(concentration * time > 1e-3, ratio, 0.5) * (mean - u * x)


def posterior():
    """Two ReLU units of three inputs: S² × S² × R⁵."""
    x = np.random.default_rng(0).normal(size=(12, 3))
    model = ws.Model(
        ws.networks.MLP(hidden=(2,), activation="relu"), ws.likelihoods.Gaussian(0.5), ws.priors.Normal(1.0)
    )
    return model.condition(ws.Batch(x, x[:, :1]))


def population(count, num_runs, kind=0):
    """Networks whose units are both vMF of one kind, shifts and readout normal of scales 0.5, 3 and 1."""
    generator, target = np.random.default_rng(1 + kind), posterior()
    units = sample(generator, MEANS[kind], CONCENTRATIONS[kind], 2 * count).reshape(count, 2, 3)
    network = {
        "layer0": {"weight": np.swapaxes(units, 1, 2), "bias": 0.5 * generator.normal(size=(count, 2))},
        "layer1": {"weight": 3.0 * generator.normal(size=(count, 2, 1)), "bias": generator.normal(size=(count, 1))},
    }
    params = ws.Parameters(network, {}, ())
    fold = lambda leaf: jnp.asarray(leaf).reshape(num_runs, count // num_runs, *leaf.shape[1:])
    positions = jax.tree.map(jnp.asarray, params)
    log_density = jax.jit(jax.vmap(target.log_density))(positions)
    return ws.Draws(jax.tree.map(fold, params), fold(log_density), *Header.of(target))


def rescaled(draws, symmetry, spread=1.0):
    """Each network of draws replaced by an equivalent one, rescaled and permuted at random."""
    keys = jax.random.split(jax.random.key(5), len(draws)).reshape(draws.num_chains, draws.num_draws)
    move = lambda key, params: symmetry.apply(params, symmetry.random(key, scale_spread=spread))
    moved = jax.jit(jax.vmap(jax.vmap(move)))(keys, jax.tree.map(jnp.asarray, draws.params))
    return dataclasses.replace(draws, params=moved)


def log_population(draws, kind=0):
    """The log density of `population`, over unit scales."""
    network = jax.tree.map(np.asarray, draws.params.network)
    units = np.swapaxes(network["layer0"]["weight"], -1, -2)
    norms = np.linalg.norm(units, axis=-1)
    total = log_density(units / norms[..., None], MEANS[kind], CONCENTRATIONS[kind]).sum(-1)
    normal = lambda value, scale: (-0.5 * (value / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi)).sum(-1)
    total = total + normal(network["layer0"]["bias"] / norms, 0.5)
    return total + normal(network["layer1"]["weight"][..., 0] * norms, 3.0) + normal(network["layer1"]["bias"], 1.0)
