"""Equinox modules as networks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.networks.table import make_module

import weightscape as ws
from weightscape.core import InputError, InputTypeError
from weightscape.networks import from_equinox

X = jnp.asarray(np.random.default_rng(0).normal(size=(5, 4)), jnp.float32)


class Counted(eqx.Module):
    """A module with an array that is not a weight."""

    weight: jax.Array
    order: np.ndarray

    def __call__(self, x):
        return self.weight @ x[self.order]


def test_parameters_are_the_arrays_by_path_and_apply_calls_the_module():
    module = eqx.nn.MLP(4, 3, width_size=6, depth=1, key=jax.random.key(0))
    network = from_equinox(module)
    params = network.init(jax.random.key(1), X)
    assert set(params) == {f"layers/{i}/{name}" for i in (0, 1) for name in ("weight", "bias")}
    np.testing.assert_allclose(network.apply(params, X), jnp.stack([module(x) for x in X]), rtol=1e-6)
    doubled = eqx.tree_at(lambda m: m.layers[1].weight, module, 2 * module.layers[1].weight)
    moved = params | {"layers/1/weight": 2 * params["layers/1/weight"]}
    np.testing.assert_allclose(network.apply(moved, X), jnp.stack([doubled(x) for x in X]), rtol=1e-6)


def test_fresh_weights_need_a_maker():
    module = make_module(jax.random.key(0))
    same = from_equinox(module)
    first, second = (same.init(jax.random.key(i), X) for i in (1, 2))
    jax.tree.map(np.testing.assert_array_equal, first, second)
    fresh = from_equinox(module, make=make_module)
    expected = make_module(jax.random.key(1)).layers[0].weight
    np.testing.assert_array_equal(fresh.init(jax.random.key(1), X)["layers/0/weight"], expected)


def test_dropout_is_switched_off():
    network = from_equinox(make_module(jax.random.key(0)))
    params = network.init(jax.random.key(1), X)
    plain = eqx.nn.inference_mode(make_module(jax.random.key(0)))
    np.testing.assert_allclose(network.apply(params, X), jax.vmap(plain)(X), rtol=1e-6)


def test_layers_with_state_are_refused():
    keys = jax.random.split(jax.random.key(0), 2)
    layers = [eqx.nn.Linear(4, 4, key=keys[0]), eqx.nn.BatchNorm(4, axis_name="batch", mode="ema")]
    with pytest.raises(InputError, match="function of the weights alone, got layers with state: BatchNorm. Use layer"):
        from_equinox(eqx.nn.Sequential(layers))
    spectral = eqx.nn.SpectralNorm(eqx.nn.Linear(4, 4, key=keys[0]), "weight", key=keys[1])
    with pytest.raises(InputError, match="got layers with state: StateIndex"):
        from_equinox(eqx.nn.Sequential([spectral]))


def test_arrays_of_integers_are_no_parameters():
    network = from_equinox(Counted(jnp.ones((2, 3)), np.array([3, 1, 0])))
    params = network.init(jax.random.key(0), X)
    assert set(params) == {"weight"}
    np.testing.assert_allclose(network.apply(params, X)[:, 0], X[:, [0, 1, 3]].sum(axis=1), rtol=1e-5)


def test_other_things_are_refused(unchecked):
    with pytest.raises(InputTypeError, match="takes a callable equinox.Module, got function"):
        from_equinox(lambda x: x)
    scalar = from_equinox(eqx.nn.Linear(4, "scalar", key=jax.random.key(0)))
    with pytest.raises(InputError, match=r"must give \(point, output\), got \(5,\)"):
        scalar.apply(scalar.init(jax.random.key(0), X), X)


def test_a_posterior_takes_an_imported_module():
    module = eqx.nn.MLP(4, 1, width_size=3, depth=1, key=jax.random.key(0))
    model = ws.Model(from_equinox(module), ws.likelihoods.Gaussian(0.5), ws.priors.Normal(1.0))
    posterior = model.condition(ws.Batch(X, X[:, :1]))
    position = posterior.start_position(jax.random.key(1))
    residual = np.asarray(X[:, :1] - jax.vmap(module)(X), np.float64)
    weights = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(eqx.filter(module, eqx.is_array))])
    normal = lambda z, scale: np.sum(-0.5 * (z / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi))
    expected = normal(residual, 0.5) + normal(weights.astype(np.float64), 1.0)
    np.testing.assert_allclose(posterior.log_density(position), expected, rtol=1e-5)
