"""Trained flows on other networks: the flow itself on its own, and a field and a density on wider ones."""

import dataclasses

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.flow import tiny, von_mises

import weightscape as ws
from weightscape.core import InputError
from weightscape.draws import Header
from weightscape.flow import Equivariant, Euclidean, FixedSteps, Geometric, Plain, transfer
from weightscape.flow.orbits import orbits
from weightscape.flow.target import Target
from weightscape.symmetry import discover, of_function

pytestmark = pytest.mark.usefixtures("x64")
KEY = jax.random.key(0)


def posterior(hidden=(2,), *, activation="relu", num_inputs=3, seed=0):
    x = np.random.default_rng(seed).normal(size=(12, num_inputs))
    network = ws.networks.MLP(hidden=hidden, activation=activation)
    model = ws.Model(network, ws.likelihoods.Gaussian(0.5), ws.priors.Normal(1.0))
    return model.condition(ws.Batch(x, np.sin(x[:, :1])))


def flow_over(target, geometry, sizes=tiny.SIZES):
    """A flow over populations whose numbers are all different from zero, and whose sizes differ by orbit."""
    architecture = Equivariant(sizes, guided=False)
    method = ws.PopulationMatching(
        geometry, architecture=architecture, solver=FixedSteps(3, diffrax.Euler(), num_nodes=2)
    )
    symmetry, layout = of_function(target), Header.of(target).layout()
    scale = 0.5 + 0.25 * jnp.asarray(orbits(symmetry.without_scaling()), layout.dtype)
    source = geometry.source(symmetry, layout, scale)
    zeros = jnp.zeros((2, layout.size), layout.dtype)
    model = method.model(KEY, symmetry, Target(target, source), zeros)
    return tiny.shaken(method.flow(Header.of(target), target, model, source))


@eqx.filter_jit
def velocity(flow, position, time=0.4):
    """The flow's velocity at a network, as a tree."""
    z = flow.source.vector(position)
    return flow.source.layout.unflatten(flow.model(jnp.asarray(time), z))


@eqx.filter_jit
def log_density(flow, position):
    return flow.log_density(position)


def network_of(flow, seed=3):
    """Where the flow starts."""
    return flow.source.position(flow.source.sample(jax.random.key(seed)))


def restricted(tree, units):
    """A network of one hidden layer with some of its units."""
    layer0, layer1 = tree.network["layer0"], tree.network["layer1"]
    first = {"weight": layer0["weight"][:, units], "bias": layer0["bias"][units]}
    return tree._replace(network={"layer0": first, "layer1": {**layer1, "weight": layer1["weight"][units]}})


def together(first, second):
    """A network with the units of both, and the last shift of the first."""
    (ours, last), (theirs, other) = ((tree.network["layer0"], tree.network["layer1"]) for tree in (first, second))
    units = {name: jnp.concatenate([ours[name], theirs[name]], axis=-1) for name in ours}
    readout = jnp.concatenate([last["weight"], other["weight"]])
    return first._replace(network={"layer0": units, "layer1": {**last, "weight": readout}})


def assert_equal(ours, theirs):
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)


@pytest.mark.parametrize(
    "geometry", [Euclidean(), Geometric(), Geometric(with_shifts=True)], ids=["Euclidean", "Geometric", "with shifts"]
)
def test_on_its_own_networks_it_is_the_flow_itself(geometry):
    """In bits, with all that it is made of; other data change the posterior and nothing else."""
    target = posterior()
    flow = flow_over(target, geometry, tiny.DEEP)
    same, elsewhere = transfer(flow, target).bare(), transfer(flow, posterior(seed=3)).bare()
    assert bool(eqx.tree_equal(same, flow.bare()))
    assert bool(eqx.tree_equal((elsewhere.model, elsewhere.source), (flow.model, flow.source)))
    assert not np.array_equal(elsewhere.posterior.x, target.x)


@pytest.mark.parametrize(
    "geometry",
    [Euclidean(), *(pytest.param(Geometric(with_shifts=on), marks=pytest.mark.slow) for on in (False, True))],
    ids=["Euclidean", "Geometric", "with shifts"],
)
def test_without_blocks_units_of_wider_networks_are_those_of_the_narrow_one(geometry):
    """v' on some units is v of the network of these, and log q' of units adds up:

    log q'(A ∪ B, c) − log q'(A ∪ C, c) = log q(B, c) − log q(C, c)      for pairs of units A, B, C and shifts c
    """
    flow = flow_over(posterior(), geometry)
    wide = transfer(flow, posterior((4,)))
    network = network_of(wide)
    pair = np.array([2, 0])
    ours, theirs = restricted(velocity(wide, network), pair), velocity(flow, restricted(network, pair))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12), ours, theirs)
    assert max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(theirs)) > 0.01
    first, second = (restricted(network, np.array(units)) for units in ([0, 1], [2, 3]))
    third = restricted(network_of(wide, 4), np.array([1, 3]))
    third.network["layer1"]["bias"] = network.network["layer1"]["bias"]
    change = log_density(wide, network) - log_density(wide, together(first, third))
    known = log_density(flow, second) - log_density(flow, third)
    np.testing.assert_allclose(change, known, rtol=1e-8)
    assert abs(known) > 0.1


@pytest.mark.slow
def test_wider_fields_commute_with_the_wider_symmetry_and_sizes_are_those_of_the_orbit():
    """With blocks, on two hidden layers: permutations and signs of units that the flow has never seen."""
    flow = flow_over(posterior((2, 2), activation="tanh"), Euclidean(), tiny.DEEP)
    target = posterior((4, 3), activation="tanh")
    wide, symmetry = transfer(flow, target), of_function(target)
    network, element = network_of(wide), symmetry.random(jax.random.key(6))
    moved = symmetry.apply(velocity(wide, network), element)
    there = velocity(wide, symmetry.apply(network, element))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12), moved, there)
    at_rest = jax.tree.map(lambda a, b: float(jnp.abs(a - b).max()), moved, velocity(wide, network))
    assert max(jax.tree.leaves(at_rest)) > 0.01
    narrow, wider = (each.source.layout.unflatten(each.source.scale).network for each in (flow, wide))
    repeated = lambda layer, name, axis, count: np.repeat(np.asarray(narrow[layer][name]).take([0], axis), count, axis)
    assert_equal(wider["layer0"]["weight"], repeated("layer0", "weight", 1, 4))
    assert len(np.unique(wider["layer0"]["weight"])) == 3
    assert_equal(wider["layer2"]["weight"], repeated("layer2", "weight", 0, 3))
    assert_equal(wider["layer1"]["weight"], np.full((4, 3), np.ravel(narrow["layer1"]["weight"])[0]))


@pytest.mark.slow
def test_flows_to_a_posterior_are_transferred_too():
    """With the guide, which looks at the new data, the curvatures by orbit, and the new prior's source."""
    flow = tiny.shaken(tiny.untrained(tiny.METHOD))
    assert bool(eqx.tree_equal(transfer(flow, flow.posterior).bare(), flow.bare()))
    network = ws.networks.MLP(hidden=(3,), activation="tanh")
    model = ws.Model(network, ws.likelihoods.Gaussian(0.5), tiny.PRIORS["normal"])
    target = model.condition(ws.Batch(tiny.posterior().x, tiny.posterior().y))
    wide, symmetry = transfer(flow, target), discover(target)
    log_knots, labels = wide.model.curvature.log_knots, wide.model.curvature.labels
    assert_equal(log_knots, flow.model.curvature.log_knots)
    assert_equal(labels, orbits(symmetry))
    assert_equal(np.unique(wide.model.scale.value), np.unique(flow.model.scale.value))
    network, element = network_of(wide), symmetry.random(jax.random.key(6))
    moved, there = symmetry.apply(velocity(wide, network), element), velocity(wide, symmetry.apply(network, element))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-11), moved, there)
    assert not np.allclose(moved.network["layer0"]["weight"], velocity(wide, network).network["layer0"]["weight"])


@pytest.mark.slow
def test_what_a_flow_draws_is_a_start_to_train_from():
    """For each member another draw, of draws in reverse; a step of 1e-9 moves weights by as much."""
    flow, target = flow_over(posterior(), Geometric()), posterior((4,))
    wide = transfer(flow, target)
    drawn = wide.sample(KEY, 3)
    ensemble = ws.DeepEnsemble(num_members=3, num_steps=1, learning_rate=1e-9)
    own = lambda draws: np.asarray(draws.params.network["layer0"]["weight"])
    members = ensemble.run(KEY, target, init=drawn)
    np.testing.assert_allclose(own(members)[:, 0], own(drawn)[0, ::-1], atol=1e-8)
    runs = ensemble.run(KEY, target, init=wide)
    np.testing.assert_allclose(np.linalg.norm(own(runs), axis=2), 1.0, atol=1e-7)
    assert len(np.unique(own(runs).round(6))) == own(runs).size


def test_networks_that_do_not_correspond_are_named():
    flow = flow_over(posterior(), Geometric())
    with pytest.raises(InputError, match=r"must be its own but for numbers of units, got .* in .*layer0.weight"):
        transfer(flow, posterior(num_inputs=4))
    with pytest.raises(InputError, match=r"must be its own but for numbers of units, got .*layer2"):
        transfer(flow, posterior((2, 2)))
    with pytest.raises(InputError, match="must be its own but for numbers of units"):
        transfer(flow, posterior(activation="tanh"))
    with pytest.raises(InputError, match="must have its spheres, got units that are rescaled in other ways"):
        transfer(flow, posterior(activation="softplus"))
    plain = dataclasses.replace(flow, method=dataclasses.replace(flow.method, architecture=Plain(tiny.SIZES)))
    with pytest.raises(TypeError, match="must be Equivariant or Revised, got Plain"):
        transfer(plain, posterior())
    with pytest.raises(TypeError, match="must be a Flow or a PopulationFlow, got MAP"):
        transfer(ws.MAP(), posterior())
    with pytest.raises(InputError, match=r"weights of the posterior's shapes \[\(4,\), .*got \[\(2,\)"):
        ws.MAP().run(KEY, posterior((4,)), init=von_mises.population(2, 2))
