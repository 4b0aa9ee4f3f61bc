"""A field that drafts and revises: what it commutes with, what it learns from, its density, and which data it sees."""

import dataclasses
import itertools

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
from weightscape.flow import (
    ByLabel,
    Equivariant,
    Euclidean,
    Exact,
    FixedSteps,
    Geometric,
    Independent,
    Revised,
    transfer,
)
from weightscape.flow.kronecker_step import kronecker_step
from weightscape.flow.objective import OfVelocity, Pair
from weightscape.flow.orbits import orbits
from weightscape.flow.target import Target
from weightscape.metanet.fixed import split_trained
from weightscape.symmetry import of_function

pytestmark = pytest.mark.usefixtures("x64")
KEY = jax.random.key(0)
GEOMETRIES = pytest.mark.parametrize("geometry", [Euclidean(), Geometric()], ids=lambda each: type(each).__name__)
_STEPS = {"no step": {}, "products": {"num_products": 2}, "factors": {"kronecker": True}}
STEPS = pytest.mark.parametrize("step", _STEPS.values(), ids=_STEPS)


def posterior(seed=0):
    x = np.random.default_rng(seed).normal(size=(12, 3))
    model = ws.Model(
        ws.networks.MLP(hidden=(3,), activation="softplus"), ws.likelihoods.Gaussian(0.5), ws.priors.Normal(1.0)
    )
    return model.condition(ws.Batch(x, np.sin(x[:, :1])))


def relu_posterior(seed=0):
    network = ws.networks.MLP(hidden=(3,), activation="relu")
    given = posterior(seed)
    return ws.Model(network, ws.likelihoods.Gaussian(0.5), ws.priors.Normal(1.0)).condition(
        ws.Batch(np.asarray(given.x), np.asarray(given.y))
    )


def flow_over(target, geometry, rows=None, *, sizes=tiny.SIZES, **options):
    """A flow whose numbers are all different from zero."""
    architecture = Revised(sizes, rows, **options)
    method = ws.PopulationMatching(
        geometry, architecture=architecture, solver=FixedSteps(3, diffrax.Euler(), num_nodes=2)
    )
    symmetry, layout = of_function(target), Header.of(target).layout()
    scale = 0.5 + 0.25 * jnp.asarray(orbits(symmetry.without_scaling()), layout.dtype)
    source = geometry.source(symmetry, layout, scale)
    zeros = jnp.zeros((2, layout.size), layout.dtype)
    model = method.model(KEY, symmetry, Target(target, source), zeros)
    return tiny.shaken(method.flow(Header.of(target), target, model, source))


@STEPS
@GEOMETRIES
def test_it_commutes_with_permutations(geometry, step):
    target = relu_posterior()
    flow = flow_over(target, geometry, num_revisions=2, **step)
    symmetry = of_function(target).without_scaling()
    z, layout, element = flow.source.sample(KEY), flow.source.layout, symmetry.random(jax.random.key(1))
    moved = lambda vector: layout.flatten(symmetry.apply(layout.unflatten(vector), element))
    assert not np.allclose(moved(z), z)
    np.testing.assert_allclose(flow.model(0.4, moved(z)), moved(flow.model(0.4, z)), atol=1e-12)


@STEPS
@pytest.mark.parametrize("num_revisions", [1, 3])
def test_revisions_see_what_the_data_say_where_what_came_before_leads_to(num_revisions, step):
    """g and δ at x̂ are computed here by hand. The metanets have a block, which is what hears log ρ and log σ."""
    flow = flow_over(posterior(), Euclidean(), sizes=tiny.DEEP, num_revisions=num_revisions, **step)
    field, z, time = flow.model, flow.source.sample(KEY), 0.3
    tries = field.tries(time, z)
    assert len(tries) == 1 + num_revisions
    for before, after in itertools.pairwise(tries):
        np.testing.assert_allclose(after, _revised_by_hand(flow, time, z, before), rtol=1e-9)
        assert np.max(np.abs(after - before)) > 1e-3
    np.testing.assert_array_equal(field(time, z), tries[-1])


def _revised_by_hand(flow, time, z, tried):
    field, ahead = flow.model, z + (1 - time) * tried
    mean = lambda z: jnp.mean(jax.scipy.stats.norm.logpdf(_outputs(flow, z), flow.posterior.y, 0.5))
    shown = [jax.grad(mean)(ahead)]
    if field.num_products:
        shown.append(_newton_by_hand(flow, ahead, shown[0]))
    if field.kronecker:
        shown.append(kronecker_step(Target(flow.posterior, flow.source), ahead, shown[0]))
    sizes = [jnp.sqrt(jnp.mean(each**2)) for each in shown]
    companions = (ahead, *(each / size for each, size in zip(shown, sizes, strict=True)))
    tree = field.layout.unflatten
    told = field.revision(time, tree(z), jnp.log(jnp.stack(sizes)), companions=tuple(map(tree, companions)))
    return tried + field.layout.flatten(told)


def _newton_by_hand(flow, z, gradient):
    """Two products: the best combination of b and Ab, with A = JᵀJ/σ² + Λ and b = g − Λz for one of 12 rows."""
    jacobian = jax.jacobian(lambda z: jnp.ravel(_outputs(flow, z)))(z)
    prior = flow.source.scale**2 / 12
    matrix, wanted = jacobian.T @ jacobian / 0.5**2 / 12 + jnp.diag(prior), gradient - prior * z
    basis = jnp.stack([wanted, matrix @ wanted])
    return jnp.linalg.solve(basis @ matrix @ basis.T, basis @ wanted) @ basis


def _outputs(flow, z):
    return flow.posterior.model.network.apply(flow.source.position(z).network, flow.posterior.x)


def test_each_try_learns_from_its_own_error_alone():
    """The error of all has the draft's gradient of its own error, and the revision's of its errors with those before
    held fixed, which is what a field has whose draft is told that velocity.
    """
    flow = flow_over(posterior(), Euclidean(), num_revisions=2)
    numbers, rest = split_trained(flow.model)
    pair = Pair(flow.source.sample(KEY), flow.source.sample(jax.random.key(1)))
    path, time = flow.objective.path, jnp.asarray(0.6)
    x, rate = path.point(time, *pair[:2]), path.rate(time, *pair[:2])
    found = jax.grad(lambda numbers: OfVelocity().error(path, time, eqx.combine(numbers, rest), x, pair))(numbers)
    alone = lambda numbers: jnp.mean((eqx.combine(numbers, rest).tries(time, x)[0] - rate) ** 2)
    close = lambda a, b: np.testing.assert_allclose(a, b, atol=1e-13)
    jax.tree.map(close, found.draft, jax.grad(alone)(numbers).draft)
    before = flow.model.tries(time, x)[:2]

    def of_revisions(numbers):
        model = dataclasses.replace(flow, model=eqx.combine(numbers, rest))
        return sum(jnp.mean((_revised_by_hand(model, time, x, tried) - rate) ** 2) for tried in before)

    jax.tree.map(close, found.revision, jax.grad(of_revisions)(numbers).revision)
    assert sum(float(jnp.sum(jnp.abs(leaf))) for leaf in jax.tree.leaves(found.revision)) > 1e-6


@pytest.mark.parametrize(
    "step", [{}, *(pytest.param(_STEPS[name], marks=pytest.mark.slow) for name in list(_STEPS)[1:])]
)
@GEOMETRIES
def test_the_divergence_knows_that_the_data_are_looked_at(geometry, step):
    """Exact divergence against central differences of the velocity along all weights, of error h² and rounding / h."""
    target = posterior() if isinstance(geometry, Euclidean) else relu_posterior()
    flow = flow_over(target, geometry, num_revisions=2, **step)
    z, time, little = flow.source.sample(KEY), 0.4, 1e-5
    velocity = jax.jit(lambda z: flow.model(time, z))
    ways = np.eye(len(z)) * little
    differences = sum((velocity(z + way) - velocity(z - way)) @ way for way in ways) / (2 * little**2)
    found = Exact().of(lambda z: flow.model(time, z), z, Exact().probes(KEY, z))
    np.testing.assert_allclose(found, [differences], rtol=1e-6, atol=1e-7)


def test_other_data_in_sight_are_those_that_it_draws_for():
    flow, others = flow_over(posterior(), Euclidean()), posterior(seed=1)
    z = flow.source.sample(KEY)
    same, moved = transfer(flow, posterior()), transfer(flow, others)
    np.testing.assert_array_equal(same.model(0.4, z), flow.model(0.4, z))
    np.testing.assert_array_equal(moved.model.tries(0.4, z)[0], flow.model.tries(0.4, z)[0])
    assert not np.allclose(moved.model(0.4, z), flow.model(0.4, z), atol=1e-6)
    fewer = flow_over(posterior(), Euclidean(), rows=4).model.sight.value.target.posterior
    assert fewer.num_points == 4 and float(fewer.likelihood_power) == 3.0


@STEPS
def test_of_rows_that_are_there_thrice_a_third_is_as_good(step):
    """To rounding: each of the rows in sight counts for three, and so the density is the same."""
    given = posterior()
    rows = ws.Batch(*(np.repeat(np.asarray(part[:4]), 3, axis=0) for part in (given.x, given.y)))
    target = given.model.condition(rows)
    whole, fewer = (flow_over(target, Euclidean(), count, sizes=tiny.DEEP, **step) for count in (None, 4))
    assert fewer.model.sight.value.target.posterior.num_points == 4
    z = whole.source.sample(KEY)
    np.testing.assert_allclose(fewer.model(0.4, z), whole.model(0.4, z), rtol=1e-9)


@GEOMETRIES
def test_it_may_revise_more_often_than_in_training(tmp_path, geometry):
    """It is the field with the same numbers that revises so often, and is stored as that."""
    target = relu_posterior()
    once, thrice = (flow_over(target, geometry, num_revisions=count, kronecker=True) for count in (1, 3))
    z, more = once.source.sample(KEY), once.with_revisions(3)
    np.testing.assert_array_equal(more.model(0.4, z), thrice.model(0.4, z))
    assert not np.allclose(more.model(0.4, z), once.model(0.4, z))
    assert more.facts["num_revisions"] == 3
    more.save(tmp_path / "flow")
    np.testing.assert_array_equal(ws.PopulationFlow.load(tmp_path / "flow", target).model(0.4, z), thrice.model(0.4, z))
    with pytest.raises(InputError, match="`num_revisions` of Revised must be"):
        once.with_revisions(0)
    blind = ws.PopulationMatching(geometry, architecture=Equivariant(tiny.SIZES, guided=False))
    with pytest.raises(InputError, match="A flow must revise to do so more often, got Equivariant"):
        dataclasses.replace(once, method=blind).with_revisions(2)


@pytest.mark.parametrize("in_turn", [False, True], ids=["the same rows", "in turn"])
@STEPS
def test_it_is_stored_without_data_and_read_with_them(tmp_path, step, in_turn):
    flow = flow_over(posterior(), Euclidean(), rows=5, num_revisions=2, in_turn=in_turn, **step)
    flow.save(tmp_path / "flow")
    again = ws.PopulationFlow.load(tmp_path / "flow", posterior())
    z = flow.source.sample(KEY)
    np.testing.assert_array_equal(again.model(0.4, z), flow.model(0.4, z))
    with pytest.raises(InputError, match="A flow that looks at the data must be loaded with them, got none"):
        ws.PopulationFlow.load(tmp_path / "flow")


def test_flows_to_posteriors_are_guided_in_another_way():
    with pytest.raises(InputError, match="must learn one answer, got Revised"):
        ws.FlowMatching(architecture=Revised())
    with pytest.raises(InputError, match="`rows` of Revised must be"):
        Revised(rows=0)
    with pytest.raises(InputError, match="`num_revisions` of Revised must be"):
        Revised(num_revisions=0)
    with pytest.raises(InputError, match="`num_products` of Revised must be at least 0, got -1"):
        Revised(num_products=-1)
    with pytest.raises(
        InputError, match="`num_products` of Revised must be 0 where the step has Kronecker factors, got 4"
    ):
        Revised(num_products=4, kronecker=True)


@pytest.mark.slow
def test_the_learned_density_is_the_known_one():
    """As for the field alone in `test_population_flow`: 0.22 nats are allowed to what was not learned."""
    networks = von_mises.rescaled(von_mises.population(2000, 100), of_function(von_mises.posterior()))
    solver = FixedSteps(18, diffrax.Bosh3(), num_nodes=8)
    method = ws.PopulationMatching(
        num_steps=400, batch_size=128, learning_rate=1e-2, average=0.98, architecture=Revised(tiny.DEEP), solver=solver
    )
    flow = method.run(KEY, von_mises.posterior(), draws=networks[:80])
    fresh = networks[80:, :10]
    log_ratio = von_mises.log_population(fresh) - flow.log_densities(fresh)
    error = np.std(log_ratio) / np.sqrt(log_ratio.size)
    assert -5 * error < np.mean(log_ratio) < 0.22 + 5 * error


@pytest.mark.slow
def test_it_hears_conditions_too():
    """Two labels whose networks differ in the last shift alone: both tries are told, and drawn networks follow."""
    networks = von_mises.population(2000, 100)
    label = np.tile(np.arange(100) % 2, (20, 1)).T
    layer = networks.params.network["layer1"]
    shifted = {**layer, "bias": np.asarray(layer["bias"]) + 4.0 * label[..., None]}
    params = networks.params._replace(network={**networks.params.network, "layer1": shifted})
    draws = dataclasses.replace(networks, params=params).with_info(side=label)
    method = ws.PopulationMatching(
        num_steps=400, batch_size=128, learning_rate=1e-2, average=0.98, architecture=Revised(tiny.DEEP),
        coupling=Independent(), conditions=ByLabel("side", 2),
    )  # fmt: skip
    flow = method.run(KEY, von_mises.posterior(), draws=draws)
    middle = [np.mean(flow.given(side).sample(KEY, 500).params.network["layer1"]["bias"]) for side in (0, 1)]
    wanted = [np.mean(np.asarray(shifted["bias"])[label == side]) for side in (0, 1)]
    np.testing.assert_allclose(middle, wanted, atol=0.5)  # an eighth of what the labels change
