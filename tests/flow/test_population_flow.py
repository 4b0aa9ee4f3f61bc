"""Flows over populations: a known distribution of networks is learned, with its density, in three geometries."""

import dataclasses

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.flow import tiny, von_mises
from tests.flow.test_transfer import flow_over
from tests.flow.test_transfer import posterior as other_posterior

import weightscape as ws
from weightscape.core import InputError, decode, encode
from weightscape.draws import Header
from weightscape.flow import (
    Adaptive,
    Aligned,
    Chained,
    Equivariant,
    Euclidean,
    FixedSteps,
    Geometric,
    Normalized,
    OptimalTransport,
    Plain,
)
from weightscape.flow.orbits import orbits
from weightscape.symmetry import of_function

pytestmark = pytest.mark.usefixtures("x64")
KEY = jax.random.key(0)
NUM_NETWORKS, NUM_RUNS = 2000, 100
with jax.enable_x64(True):
    METHOD = ws.PopulationMatching(
        num_steps=400,
        batch_size=128,
        learning_rate=1e-2,
        average=0.98,
        architecture=Equivariant(tiny.DEEP, guided=False),
        solver=FixedSteps(18, diffrax.Bosh3(), num_nodes=8),
    )


def symmetry():
    return of_function(von_mises.posterior())


def networks():
    """Of known density, each rescaled and permuted at random."""
    return von_mises.rescaled(von_mises.population(NUM_NETWORKS, NUM_RUNS), symmetry())


@pytest.fixture(scope="module")
def trained():
    with jax.enable_x64(True):
        return METHOD.run(KEY, von_mises.posterior(), draws=networks()[:80])


def fresh():
    """Networks of other runs; always as many, so that one program is compiled for their densities."""
    return networks()[80:, :10]


def units_of(draws, *, with_shifts=False):
    """Incoming weights of all units, in a row, and the shift behind them if asked for."""
    first = draws.params.network["layer0"]
    weights = np.swapaxes(np.asarray(first["weight"]), -1, -2).reshape(-1, 3)
    return np.concatenate([weights, np.reshape(first["bias"], (-1, 1))], axis=1) if with_shifts else weights


def with_dead_unit(draws, size):
    """The first unit of one network with weights of a size and a shift of 1e-10, or none where the size is 0."""
    params = jax.tree.map(np.array, draws.params)
    weights, shifts = (params.network["layer0"][name] for name in ("weight", "bias"))
    weights[3, 0, :, 0] *= size / np.linalg.norm(weights[3, 0, :, 0])
    shifts[3, 0, 0] = 1e-10 * np.sign(size)
    return dataclasses.replace(draws, params=params)


def test_the_learned_density_is_the_known_one(trained):
    """KL(p ‖ q) from networks of other runs; before training it is that of vMF to uniform, 2 × 0.65 nats.

    0.11 nats are left after this training; twice that is allowed.
    """
    log_ratio = von_mises.log_population(fresh()) - trained.log_densities(fresh())
    error = np.std(log_ratio) / np.sqrt(log_ratio.size)
    assert -5 * error < np.mean(log_ratio) < 0.22 + 5 * error
    assert np.std(log_ratio) < 0.8 < np.std(von_mises.log_population(fresh()))


def test_moments_of_drawn_networks_are_the_known_ones(trained):
    """Units are vMF, the others normal. 0.06 is allowed to what was not learned, of means and deviations near 1."""
    drawn = trained.sample(jax.random.key(1), 2000)
    assert drawn.log_proposal is None and np.all(np.isfinite(drawn.log_density))
    mean, second = von_mises.moments(von_mises.MEANS[0], von_mises.CONCENTRATIONS[0])
    units = units_of(drawn)
    np.testing.assert_allclose(np.linalg.norm(units, axis=1), 1.0, rtol=1e-12)
    error = 5 / np.sqrt(len(units))
    np.testing.assert_allclose(units.mean(0), mean, atol=0.06 + error)
    np.testing.assert_allclose(units.T @ units / len(units), second, atol=0.06 + error)
    network = drawn.params.network
    for leaf, scale in (
        (network["layer0"]["bias"], 0.5),
        (network["layer1"]["weight"], 3.0),
        (network["layer1"]["bias"], 1),
    ):
        values = np.ravel(leaf) / scale
        assert abs(values.mean()) < 0.06 + error and abs(values.std() - 1) < 0.06 + error


def test_equivalent_networks_have_equal_density(trained):
    draws = fresh()
    known = trained.log_densities(draws)
    assert np.std(known) > 0.3
    moved = von_mises.rescaled(draws, symmetry(), spread=2.0)
    assert np.abs(units_of(moved) - units_of(draws)).max() > 1
    np.testing.assert_allclose(trained.log_densities(moved), known, rtol=1e-9)


def test_training_is_among_the_facts_and_nothing_of_it_is_lost_on_disk(trained, tmp_path):
    facts = trained.facts
    assert (facts["method"], facts["num_train"], facts["num_held_out"]) == ("PopulationMatching", 1440, 160)
    assert facts["held_out_losses"][-1] < 0.9 * facts["held_out_losses"][0]
    trained.save(tmp_path)
    loaded, draws = ws.load_approximation(tmp_path, von_mises.posterior()), fresh()
    assert isinstance(loaded, ws.PopulationFlow)
    np.testing.assert_array_equal(loaded.log_densities(draws), trained.log_densities(draws))
    ours, theirs = (flow.sample(jax.random.key(3), 4).params for flow in (loaded, trained))
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)


def test_networks_on_their_way_stay_on_the_spheres(trained):
    along = trained.path(jax.random.key(2), 3, jnp.linspace(0.0, 1.0, 4))
    weights = np.asarray(along.network["layer0"]["weight"])
    assert weights.shape == (3, 4, 3, 2)
    np.testing.assert_allclose(np.linalg.norm(weights, axis=2), 1.0, rtol=1e-12)
    assert np.abs(weights[:, -1] - weights[:, 0]).max() > 0.1


@pytest.mark.slow
def test_a_resumed_run_is_the_one_that_was_finished(tmp_path):
    draws = networks()[:80]
    short = dataclasses.replace(METHOD, num_steps=20)
    first = short.run(KEY, von_mises.posterior(), draws=draws, store=tmp_path)
    again = short.run(KEY, von_mises.posterior(), draws=draws, store=tmp_path, resume=True)
    np.testing.assert_array_equal(first.log_densities(draws[:1, :2]), again.log_densities(draws[:1, :2]))
    copies = von_mises.rescaled(draws, symmetry(), spread=2.0)
    np.testing.assert_allclose(copies.log_density, draws.log_density)
    for others in (networks()[20:], copies):
        with pytest.raises(InputError, match="must have the key"):
            short.run(KEY, von_mises.posterior(), draws=others, store=tmp_path, resume=True)


def test_training_stops_where_the_loss_of_held_out_networks_is_not_finite():
    """Those of the last run are too large for their squares, and sizes are of the others."""
    leaves = jax.tree.map(np.array, networks().params)
    leaves.network["layer0"]["weight"][-1] *= 1e200
    draws = dataclasses.replace(networks(), params=leaves)
    method = dataclasses.replace(METHOD, geometry=Euclidean(), num_steps=20)
    with pytest.raises(InputError, match="got a loss on held-out draws that is not, before step 20"):
        method.run(KEY, von_mises.posterior(), draws=draws)


COUPLINGS = {
    "euclidean": (Euclidean(), Chained(OptimalTransport(), Aligned())),
    "normalized": (Normalized(), OptimalTransport()),
    "geometric": (Geometric(), Chained(OptimalTransport(), Aligned())),
    "normalized with shifts": (Normalized(with_shifts=True), OptimalTransport()),
    "geometric with shifts": (Geometric(with_shifts=True), Chained(OptimalTransport(), Aligned())),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COUPLINGS)
def test_every_geometry_trains_with_couplings(name):
    geometry, coupling = COUPLINGS[name]
    small = {"num_steps": 40, "batch_size": 8, "architecture": Equivariant(tiny.SIZES, guided=False)}
    method = dataclasses.replace(METHOD, geometry=geometry, coupling=coupling, **small)
    flow = method.run(KEY, von_mises.posterior(), draws=networks()[:, :2])
    drawn = flow.sample(KEY, 50)
    with_shifts = getattr(geometry, "with_shifts", False)
    norms = np.linalg.norm(units_of(drawn, with_shifts=with_shifts), axis=1)
    assert np.all(np.isfinite(drawn.log_density))
    assert np.allclose(norms, 1, rtol=1e-9) == isinstance(geometry, Geometric)
    draws = networks()[:1, :3]
    if isinstance(geometry, Normalized):
        with pytest.raises(InputError, match="a Normalized one, whose straight path leaves the spheres"):
            flow.log_densities(draws)
        return
    known = flow.log_densities(draws)
    permuted, scaled = (von_mises.rescaled(draws, symmetry(), spread=spread) for spread in (0.0, 1.0))
    np.testing.assert_allclose(flow.log_densities(permuted), known, rtol=1e-9)
    assert np.allclose(flow.log_densities(scaled), known, rtol=1e-9) == isinstance(geometry, Geometric)


def test_with_shifts_equivalent_networks_have_equal_density():
    """Of a flow that was not trained."""
    flow, draws = flow_over(von_mises.posterior(), Geometric(with_shifts=True)), fresh()[:2, :3]
    known = flow.log_densities(draws)
    moved = von_mises.rescaled(draws, symmetry(), spread=2.0)
    np.testing.assert_allclose(flow.log_densities(moved), known, rtol=1e-9)
    assert np.std(known) > 0.3


def test_with_shifts_a_stored_flow_draws_the_same_bits(tmp_path):
    """And units whose (w, b) have norm one."""
    flow = flow_over(von_mises.posterior(), Geometric(with_shifts=True))
    flow.save(tmp_path)
    loaded = ws.load_approximation(tmp_path, von_mises.posterior())
    ours, theirs = (each.sample(KEY, 4) for each in (loaded, flow))
    jax.tree.map(np.testing.assert_array_equal, ours.params, theirs.params)
    np.testing.assert_allclose(np.linalg.norm(units_of(ours, with_shifts=True), axis=1), 1.0, rtol=1e-12)
    assert not np.allclose(np.linalg.norm(units_of(ours), axis=1), 1.0, atol=0.1)


@pytest.mark.parametrize("kind", [Normalized, Geometric])
def test_a_dead_unit_is_refused_where_it_would_set_the_size_of_shifts(kind):
    """One shift of 1e-10 beside weights of 1e-14 among 90 runs of two networks of two units that are not held out:
    √(10⁸/360) = 527 in the mean, thousands of times those that are small. With shifts on the spheres it says nothing.
    """
    draws, posterior = with_dead_unit(networks()[:, :2], 1e-14), von_mises.posterior()
    fitted = lambda draws, **options: dataclasses.replace(METHOD, geometry=kind(**options)).fitted(
        symmetry(), posterior, draws
    )
    with pytest.raises(InputError, match=r"got 5\d\d and 0\.\d+: incoming weights .* `with_shifts=True`"):
        fitted(draws)
    for known in (fitted(networks()[:, :2]), fitted(draws, with_shifts=True)):
        assert np.all(np.asarray(known[0].scale) < 4)
    with pytest.raises(InputError, match="unit whose incoming weights and shift are all zero, got 1 with such units"):
        fitted(with_dead_unit(draws, 0.0), with_shifts=True)


@pytest.mark.parametrize("geometry", [Euclidean(), Geometric()])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_networks_that_are_left_out_say_nothing_of_sizes(geometry, value):
    """One that is not finite changes neither the source nor what is learned from; how many are left out is told."""
    draws = networks()[:, :2]
    leaves = jax.tree.map(np.array, draws.params)
    leaves.network["layer0"]["weight"][3, 0, 0, 0] = value
    broken, whole = dataclasses.replace(draws, params=leaves), draws[np.delete(np.arange(NUM_RUNS), 3)]
    method = dataclasses.replace(METHOD, geometry=geometry)
    (source, given), (other, known) = (method.fitted(symmetry(), von_mises.posterior(), d) for d in (broken, whole))
    np.testing.assert_array_equal(source.scale, other.scale)
    np.testing.assert_array_equal(given.train, known.train)
    np.testing.assert_array_equal(given.held_out, known.held_out)
    assert (given.num_left_out, known.num_left_out) == (1, 0)


def test_weights_of_training_have_size_one_and_a_reach():
    """By orbit: here those of the two units, with the largest |z| of either."""
    posterior, draws = von_mises.posterior(), networks()
    method = dataclasses.replace(METHOD, geometry=Euclidean(), num_steps=20)
    source, given = method.fitted(symmetry(), posterior, draws)
    labels = orbits(symmetry().without_scaling())
    flow = method.run(KEY, posterior, draws=draws)
    np.testing.assert_array_equal(flow.source.scale, source.scale)
    for label in np.unique(labels):
        z = given.train[:, labels == label]
        np.testing.assert_allclose(np.sqrt(np.mean(z**2)), 1.0, rtol=1e-6)
        np.testing.assert_array_equal(np.asarray(flow.reach)[labels == label], np.abs(z).max())


def test_settings_from_before_shifts_were_an_option_are_those_without():
    stored = encode(Geometric(with_shifts=True)).tree
    assert decode(stored) == Geometric(with_shifts=True)
    assert decode({**stored, "fields": {}}) == Geometric() != Geometric(with_shifts=True)


@pytest.mark.usefixtures("unchecked")
def test_names_in_place_of_objects_are_refused_at_once(trained):
    with pytest.raises(TypeError, match="`geometry` of PopulationMatching must be a Geometry, got str"):
        ws.PopulationMatching("geometric")  # pyright: ignore[reportArgumentType] the mistake itself
    with pytest.raises(TypeError, match="`conditions` of PopulationMatching must be Conditions or None, got str"):
        ws.PopulationMatching(conditions="loss")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="`solver` must be a Solver, got str"):
        trained.with_solver("FixedSteps")


def test_what_cannot_be_done_is_named(trained):
    posterior, draws = von_mises.posterior(), networks()[:, :2]
    with pytest.raises(InputError, match="must learn from networks, got none"):
        METHOD.run(KEY, posterior)
    with pytest.raises(InputError, match="`init` of PopulationMatching must be None, got PopulationFlow"):
        METHOD.run(KEY, posterior, draws=draws, init=trained)
    with pytest.raises(InputError, match="must not be guided by a posterior, got one that is"):
        ws.PopulationMatching(architecture=Equivariant())
    with pytest.raises(TypeError, match="of a Geometric flow must be FixedSteps, got Adaptive"):
        trained.with_solver(Adaptive())
    with pytest.raises(TypeError, match="of a Geometric flow must be FixedSteps, got Adaptive"):
        ws.PopulationMatching(Geometric(), solver=Adaptive())
    for times in ([1.0, 0.5], [0.0, 2.0]):
        with pytest.raises(InputError, match=r"`times` must be in a row, increase and lie in \[0, 1\]"):
            trained.path(KEY, 1, jnp.asarray(times))
    wide = flow_over(other_posterior((3,)), Geometric())
    with pytest.raises(InputError, match="What a flow learns from must be networks of the shapes"):
        METHOD.run(KEY, wide.posterior, draws=draws)
    with pytest.raises(InputError, match="`draws` of log_densities must be networks of the shapes"):
        wide.log_densities(draws)
    straight = dataclasses.replace(trained, method=dataclasses.replace(METHOD, geometry=Normalized()))
    with pytest.raises(InputError, match="a Normalized one, whose straight path leaves the spheres"):
        straight.log_densities(draws)
    with pytest.raises(InputError, match="`evidence` must be asked of a density over all weights"):
        trained.evidence(KEY, 10)
    with pytest.raises(InputError, match="no unit whose incoming weights are all zero, got 1 with such units"):
        METHOD.run(KEY, posterior, draws=with_dead_unit(draws, 0.0))
    narrow = ws.Model(
        ws.networks.MLP(hidden=(2,), activation="relu"), ws.likelihoods.Gaussian(0.5), ws.priors.Normal(1.0)
    ).condition(ws.Batch(np.ones((4, 1)), np.ones((4, 1))))
    population = ws.Population(num_runs=20, num_steps=2).run(KEY, narrow)
    with pytest.raises(InputError, match="must each have a sphere of incoming weights"):
        METHOD.run(KEY, narrow, draws=population)
    on_circles = Geometric(with_shifts=True).source(of_function(narrow), Header.of(narrow).layout(), jnp.ones((7,)))
    assert float(np.sum(on_circles.curved)) == 4


@pytest.mark.slow
def test_a_plain_field_learns_too():
    method = dataclasses.replace(METHOD, architecture=Plain(tiny.SIZES), num_steps=40)
    flow = method.run(KEY, von_mises.posterior(), draws=networks()[:, :2])
    assert np.all(np.isfinite(flow.log_densities(networks()[:1, :2])))
