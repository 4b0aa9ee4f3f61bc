"""Objects survive as data, and loading runs nothing that is not registered."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import weightscape as ws
from weightscape.core import InputError, decode, encode, register

OBJECTS = {
    "network": ws.networks.MLP(hidden=(3, 4), activation="relu", bias=False, outputs=2),
    "prior": ws.priors.Normal(0.1),
    "prior by leaf": ws.priors.Normal({"layer0": 0.3, "layer1": 1e-20}),
    "likelihood": ws.likelihoods.Gaussian(ws.priors.Gamma(0.5, 1.0)),
    "method": ws.HMC(num_chains=3, step_size=0.1, trajectory=1.5, mass=ws.LowRankMass(rank=3)),
    "scaling": ws.data.Scaling(np.linspace(0, 1, 40), np.linspace(1, 2, 40)),
    "special numbers": {"nan": float("nan"), "infinity": np.float32(np.inf), "tuple": (1, True, None, "text")},
}


@pytest.mark.parametrize("thing", OBJECTS.values(), ids=OBJECTS)
def test_round_trip_through_json_is_exact(thing):
    encoded = encode(thing)
    back = decode(json.loads(json.dumps(encoded.tree, allow_nan=False)), encoded.arrays)
    assert type(back) is type(thing)
    assert jax.tree.structure(back) == jax.tree.structure(thing)
    for one, other in zip(jax.tree.leaves(back), jax.tree.leaves(thing), strict=True):
        np.testing.assert_array_equal(one, other)


def test_every_float32_survives():
    bits = np.random.default_rng(0).integers(0, 2**32, 16, dtype=np.uint32)
    values = bits.view(np.float32)
    back = decode(json.loads(json.dumps(encode(values).tree)))
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back[~np.isnan(values)], values[~np.isnan(values)])


def test_large_arrays_travel_beside_the_json():
    encoded = encode(OBJECTS["scaling"])
    assert len(encoded.arrays) == 2
    with pytest.raises(InputError, match="must be beside its description"):
        decode(encoded.tree, {})


def test_what_is_not_registered_is_refused_both_ways():
    with pytest.raises(InputError, match="must be made of registered parts"):
        encode(ws.networks.MLP(activation=lambda x: x))
    with pytest.raises(InputError, match="must be registered, got 'os.system'"):
        decode({"type": "os.system", "fields": {"command": "true"}})
    with pytest.raises(InputError, match="fields that this version knows, got scale, skew"):
        decode({"type": "priors.Normal", "fields": {"scale": {"float": "1.0"}, "skew": {"float": "1.0"}}})
    with pytest.raises(InputError, match="must be one of ours"):
        decode({"evil": 1})
    with pytest.raises(InputError, match="is in use"):
        register("networks.MLP", jnp.tanh)
