"""What is bound to a flow with conditions: velocities, files, other networks, priors, and what is refused."""

import dataclasses

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from tests.flow import tiny
from tests.flow.linear_flows import problem, weights_of
from tests.flow.test_conditions import labelled, measured, population
from tests.flow.test_transfer import network_of, posterior, restricted, velocity

import weightscape as ws
from weightscape.core import InputError
from weightscape.draws import Header
from weightscape.flow import (
    Aligned,
    ByLabel,
    ByLoss,
    ByProperty,
    Equivariant,
    Euclidean,
    FixedSteps,
    Geometric,
    Independent,
    Normalized,
    OptimalTransport,
    Plain,
    Principal,
    Straight,
    WhitenedSource,
    guided,
    mean_losses,
    prior_of,
    transfer,
)
from weightscape.flow.descent import Descent, Examples
from weightscape.flow.fields import Field
from weightscape.flow.given import Given
from weightscape.flow.objective import Objective
from weightscape.flow.target import Target
from weightscape.flow.told_examples import fitted_encoding, known_values, told_examples
from weightscape.flow.training_set import training_set
from weightscape.metanet import Sizes, adam_with_warmup
from weightscape.metanet.fixed import split_trained
from weightscape.symmetry import of_function

pytestmark = pytest.mark.usefixtures("x64")
KEY = jax.random.key(0)
VALUES = np.array([3.0, 5.0, 10.0])


def untrained(target, geometry=None, architecture=None, conditions=None):
    """A flow whose numbers are all different from zero, told of a property with mean 6 and a deviation near 3."""
    method = ws.PopulationMatching(
        Geometric() if geometry is None else geometry,
        architecture=Equivariant(tiny.DEEP, guided=False) if architecture is None else architecture,
        solver=FixedSteps(3, diffrax.Euler(), num_nodes=2),
        conditions=ByProperty("size") if conditions is None else conditions,
    )
    symmetry, layout = of_function(target), Header.of(target).layout()
    source = method.geometry.source(symmetry, layout, jnp.full((layout.size,), 0.7))
    draws = jax.random.normal(KEY, (20, layout.size))
    encoding = method.conditions.encoding(VALUES if conditions is None else np.arange(3))
    model = method.model(KEY, symmetry, Target(target, source), draws, encoding)
    return tiny.shaken(method.flow(Header.of(target), target, model, source), 0.2)


@eqx.filter_jit
def said(field, time, z, context=None):
    return field(time, z) if context is None else field(time, z, context)


FLOWS = {
    "euclidean": (Euclidean(), Plain(tiny.DEEP)),
    "normalized": (Normalized(), Principal(tiny.DEEP)),
    "geometric": (Geometric(), Equivariant(tiny.DEEP, guided=False)),
}


@pytest.mark.parametrize("name", FLOWS)
def test_the_velocity_is_that_of_the_context_in_every_geometry(name):
    """v(c), and v(∅) + w (v(c) − v(∅)) with a strength; e(8) = (1, (8 − 6)/√(26/3)), ∅ = 0."""
    flow = untrained(posterior(), *FLOWS[name])
    time, z = jnp.asarray(0.3), flow.source.sample(KEY)
    at = lambda value, strength=None: said(flow.given(value, strength=strength).model, time, z)
    context = jnp.asarray([1.0, 2 / np.sqrt(26 / 3)])
    there, nowhere = (said(flow.model.field, time, z, each) for each in (context, jnp.zeros(2)))
    np.testing.assert_allclose(at(8.0), there, rtol=1e-12)
    np.testing.assert_array_equal(at(None), nowhere)
    assert np.abs(there - nowhere).max() > 1e-3 and np.abs(there - at(3.0)).max() > 1e-3
    np.testing.assert_allclose(at(8.0, 1.0), there, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(at(8.0, 2.5), 2.5 * there - 1.5 * nowhere, rtol=1e-12, atol=1e-14)
    if name == "geometric":
        np.testing.assert_allclose(flow.source.manifold.project(z, at(8.0, 2.5)), at(8.0, 2.5), atol=1e-13)


def test_contexts_go_with_their_networks():
    """A property that is the network's first weight is, among the examples, the first entry of its vector.

    One run does not move and one network is not finite; those left are mixed, some held out, and these repeated.
    """
    weights = np.random.default_rng(0).normal(2.0, 3.0, size=(12, 5, 3))
    weights[4] = weights[4, :1]
    weights[7, 2, 1] = np.inf
    conditions, source = ByProperty("first"), WhitenedSource.of(problem().posterior)
    draws = population(weights, first=weights[..., 0])
    given = training_set(source, draws, 0.3, mixed=True)
    values = known_values(conditions, problem().posterior, draws)
    encoding = fitted_encoding(conditions, values, given)
    train, held_out = told_examples(given, 32, encoding, values)
    assert (len(train.z), len(held_out.z), given.num_left_out) == (35, 32, 2)
    for examples in (train, held_out):
        first = examples.z[:, 0] * source.scale[0]
        np.testing.assert_array_equal(examples.contexts[:, 0], 1.0)
        shown = examples.contexts[:, 1] * encoding.deviation + encoding.mean.sum()
        np.testing.assert_allclose(shown, first, rtol=1e-12)
    np.testing.assert_allclose([train.contexts[:, 1].mean(), train.contexts[:, 1].std()], [0.0, 1.0], atol=1e-12)


@pytest.mark.parametrize("far", [0.0, 1.7e9 + 50.0, -1e12 / 3])
def test_a_large_mean_takes_no_digits_from_what_differs(far):
    """In single precision, in which numbers near 1.7e9 lie 128 apart: contexts have mean 0 and deviation 1.

    Values are rounded to eps |mean|, in units of the deviation, and the deviation to that of single precision. Sums of
    18 such terms are allowed.
    """
    values = far + np.random.default_rng(0).normal(size=18)
    wide = ByProperty("time").encoding(values)
    with jax.enable_x64(False):
        encoding = ByProperty("time").encoding(values)
        jax.tree.map(lambda leaf, other: np.testing.assert_array_equal(leaf, np.float32(other)), encoding, wide)
        assert {leaf.dtype for leaf in jax.tree.leaves(encoding)} == {jnp.dtype("float32")}
        contexts = encoding.contexts(values)[:, 1]
        rounding = 18 * (np.finfo(np.float32).eps + np.finfo(float).eps * abs(far))
        np.testing.assert_allclose([contexts.mean(), contexts.std()], [0.0, 1.0], atol=rounding)
        np.testing.assert_allclose(contexts, (values - values.mean()) / values.std(), rtol=0, atol=rounding)
        for inside in (values.min() - 0.99 * values.std(), values.mean(), values.max() + 0.99 * values.std()):
            encoding.require_seen(np.asarray(inside))
        for outside in (values.min() - 1.01 * values.std(), values.max() + 1.01 * values.std()):
            with pytest.raises(InputError, match="must lie within a deviation of what was seen"):
                encoding.require_seen(np.asarray(outside))


@pytest.mark.parametrize("value", [0.1, 1 / 3, -1.7e9 / 7, 0.0])
def test_the_rounding_of_a_mean_is_no_difference(value):
    """The mean of equal numbers is not quite that number. Differences of a thousand roundings are seen as such."""
    for count in (10, 18, 1000):
        with pytest.raises(InputError, match=r"`info\['one'\]` of draws must differ between networks, got"):
            ByProperty("one").encoding(np.full(count, value))
    ByProperty("one").encoding(value + 1e3 * np.finfo(float).eps * max(abs(value), 1e-9) * np.arange(10))


@pytest.mark.parametrize("which", ["train_rows", "held_out_rows"])
def test_no_network_is_used_of_which_nothing_is_known(which):
    """Of networks that are left out nothing need be known."""
    weights = np.random.default_rng(0).normal(size=(12, 5, 3))
    weights[4] = weights[4, :1]
    draws = population(weights, first=weights[..., 0])
    given = training_set(WhitenedSource.of(problem().posterior), draws, 0.3, mixed=True)
    conditions, values = ByProperty("first"), np.ravel(weights[..., 0]).copy()
    values[4 * 5 : 5 * 5] = np.nan
    fitted_encoding(conditions, values, given)
    row = getattr(given, which)[3]
    values[row] = np.inf
    told = rf"`info\['first'\]` of draws must be finite, got inf for network {row} \(1 in all"
    with pytest.raises(InputError, match=told):
        fitted_encoding(conditions, values, given)
    with pytest.raises(InputError, match=f"What ByLoss says of networks must be finite, got inf for network {row}"):
        fitted_encoding(ByLoss(), values, given)


def test_every_label_of_merged_populations_is_learned_and_held_out():
    draws = labelled(20, 0)
    given = training_set(WhitenedSource.of(problem().posterior), draws, 0.3, mixed=True)
    labels = np.ravel(draws.info["kind"])
    counts = [np.bincount(labels[rows], minlength=3) for rows in (given.train_rows, given.held_out_rows)]
    np.testing.assert_array_equal(counts[0] + counts[1], 200)
    # 18 of 60 runs are held out: 6 ± 1.7 of each label.
    assert all(20 <= count <= 120 for count in counts[1])


class MeanContext(Objective):
    """A loss that tells which contexts a step has seen."""

    def loss(self, key, model, sources, targets, gradients=None, *, contexts):
        return jnp.mean(contexts) + 0 * jnp.sum(model.value)


class Numbers(eqx.Module):
    value: Array


def test_the_share_of_contexts_that_are_dropped_is_the_one_asked_for():
    source, model = WhitenedSource.of(problem().posterior), Numbers(jnp.zeros(3))
    examples = Examples(jnp.zeros((4, 3)), None, jnp.full((4, 2), 10.0))
    rest, optimiser = split_trained(model)[1], adam_with_warmup(1e-2, 10, weight_decay=0.0, largest_norm=1.0)
    walk = Descent(
        rest, MeanContext(Straight()), source, Independent(), optimiser, jnp.asarray(0.9), examples,
        jnp.asarray([0.25, 0.5, 0.75, 1.0]), examples, None, 50, jnp.asarray(0.3),
    )  # fmt: skip
    step = lambda key: walk.step(key, walk.begin(model), jnp.asarray(0))[1]
    told = np.asarray(jax.jit(jax.vmap(step))(jax.random.split(KEY, 1000))) / 10
    assert abs(told.mean() - 0.7) < 5 * np.sqrt(0.3 * 0.7 / 50_000)


def test_losses_are_the_mean_negative_log_likelihoods():
    """Gaussian noise on a linear model, by hand, for more networks than go at once; untempered."""
    known, draws = problem(), measured(7, 0)
    residuals = known.y - weights_of(draws) @ known.x.T
    expected = np.mean(0.5 * (residuals / known.noise) ** 2, axis=-1) + np.log(known.noise * np.sqrt(2 * np.pi))
    target = known.posterior.tempered(likelihood=0.1)
    np.testing.assert_allclose(ByLoss().values(target, draws), expected, rtol=1e-12)
    np.testing.assert_allclose(mean_losses(known.posterior, draws), expected, rtol=1e-12)


class Counted(Field):
    """A field that notes each time that it is traced."""

    traces: list = eqx.field(static=True)

    def __call__(self, time, z, context=None):
        self.traces.append(None)
        return context[0] - context[1] * z


def test_another_value_and_another_strength_compile_nothing():
    flow, traces = untrained(problem().posterior, Euclidean(), Plain(tiny.DEEP)), []
    counted = dataclasses.replace(flow, model=Given(Counted(traces), flow.model.encoding))
    ends = lambda value, strength=None: counted.given(value, strength=strength).path(KEY, 2, jnp.ones(1))
    first, compiled = ends(3.0), len(traces)
    second, third = ends(8.0), ends(None)
    assert len(traces) == compiled > 0
    for other in (second, third):
        assert np.abs(other.network["layer0"]["weight"] - first.network["layer0"]["weight"]).max() > 0.1
    ends(3.0, 2.0)
    compiled = len(traces)
    ends(5.0, 3.0)
    assert len(traces) == compiled


@pytest.mark.parametrize("strength", [None, 2.0])
def test_nothing_that_is_bound_is_lost_on_disk(tmp_path, strength):
    """In bits, with all that it is made of."""
    target = problem().posterior
    flow = untrained(target, Euclidean(), Plain(tiny.DEEP))
    flow.save(tmp_path)
    loaded = ws.load_approximation(tmp_path, target)
    assert bool(eqx.tree_equal(loaded.bare(), flow.bare()))
    bound = loaded.given(8.0, strength=strength)
    bound.save(tmp_path)
    again = ws.load_approximation(tmp_path, target)
    assert bool(eqx.tree_equal(again.bare(), bound.bare())) and again.facts == bound.facts
    assert bool(eqx.tree_equal(again.given(3.0).bare(), flow.given(3.0).bare()))


def test_a_flow_is_transferred_with_what_is_bound():
    """On its own networks it is itself; on wider ones of the same conditions, and still asked for the same."""
    flow = untrained(posterior())
    bound = flow.given(8.0)
    assert bool(eqx.tree_equal(transfer(bound, posterior()).bare(), bound.bare()))
    wide = posterior((3,))
    moved = transfer(flow, wide).given(8.0)
    assert bool(eqx.tree_equal(moved.bare(), transfer(bound, wide).bare()))
    network = network_of(moved)
    assert jax.tree.map(jnp.shape, velocity(moved, network)) == jax.tree.map(jnp.shape, network)
    assert jax.tree.leaves(restricted(network, np.arange(2)))[0].shape == (2,)


def test_a_bound_flow_is_guided_and_is_a_prior():
    """At no strength guidance is the bound flow, bit by bit; a prior draws its networks."""
    target = problem().posterior
    flow = untrained(target, Euclidean(), Plain(tiny.DEEP))
    bound, other = flow.given(8.0), flow.given(3.0)
    time, z = jnp.asarray(0.3), flow.source.sample(KEY)
    still = guided(bound, target, 0.0).flow.model
    np.testing.assert_array_equal(said(still, time, z), said(bound.model, time, z))
    assert np.abs(said(still, time, z) - said(other.model, time, z)).max() > 1e-3
    drawn = prior_of(bound).sample(KEY, target.start_position(KEY).network)
    jax.tree.map(np.testing.assert_array_equal, drawn, bound.sample_position(KEY).network)


def test_what_is_not_asked_for_rightly_is_named():
    target = problem().posterior
    flow, draws = untrained(target, Euclidean(), Plain(tiny.DEEP)), measured(1, 0)
    nothing = r"must be told which networks are wanted, got nothing. Use `flow.given\(value\)`"
    for use in (
        lambda: flow.sample(KEY, 2),
        lambda: flow.log_densities(draws),
        lambda: flow.path(KEY, 2, jnp.ones(1)),
        lambda: guided(flow, target).sample(KEY, 2),
        lambda: prior_of(flow).log_density(target.start_position(KEY).network),
    ):
        with pytest.raises(InputError, match=nothing):
            use()
    with pytest.raises(InputError, match="must lie within a deviation of what was seen, from 0.05608 to 12.94, got 13"):
        flow.given(13.0)
    with pytest.raises(InputError, match="within a deviation of what was seen, .* got nan"):
        flow.given(np.nan)
    with pytest.raises(TypeError, match="The value of `given` must be a number, got 'low'. Pass"):
        flow.given(np.asarray("low"))
    with pytest.raises(InputError, match="`strength` of given must be finite"):
        flow.given(3.0, strength=np.inf)
    with pytest.raises(InputError, match=r"must be one value, got the shape \(2,\)"):
        flow.given(np.zeros(2))
    labels = untrained(target, Euclidean(), Plain(tiny.DEEP), ByLabel("kind", 3, dropped=0.0))
    with pytest.raises(InputError, match="The label of `given` must be from 0 to 2, got 3"):
        labels.given(3)
    with pytest.raises(TypeError, match="must be a whole number, got float64"):
        labels.given(1.5)
    for use in (lambda: labels.given(None), lambda: labels.given(1, strength=2.0)):
        with pytest.raises(InputError, match="must know it without conditions, got one trained with `dropped=0`"):
            use()
    plain = dataclasses.replace(flow, model=flow.model.field)
    with pytest.raises(InputError, match="`given` must be asked of a flow with conditions, got one without"):
        plain.given(3.0)


def test_what_cannot_be_learned_is_named():
    target, draws = problem().posterior, labelled(20, 0)
    run = lambda conditions, draws=draws, **options: ws.PopulationMatching(
        Euclidean(), num_steps=1, architecture=Plain(tiny.DEEP), conditions=conditions, **options
    ).run(KEY, target, draws=draws)
    with pytest.raises(InputError, match=r"in `info` of draws, must be a known name, got 'kin'. Did you mean 'kind'"):
        run(ByLabel("kin", 3))
    with pytest.raises(InputError, match=r"`info\['kind'\]` of draws must be from 0 to 1, got labels from 0 to 2"):
        run(ByLabel("kind", 2))
    with pytest.raises(InputError, match=r"must have training networks, got none of \[3\]"):
        run(ByLabel("kind", 4), held_out=0.4)  # the last third of the runs has the last label
    with pytest.raises(TypeError, match="must be a whole number, got float64"):
        run(ByLabel("log", 3), draws.with_info(log=0.5))
    with pytest.raises(InputError, match=r"`info\['one'\]` of draws must differ between networks, got 1.0 for all"):
        run(ByProperty("one"), draws.with_info(one=1.0))
    with pytest.raises(InputError, match=r"`info\['none'\]` of draws must be finite"):
        run(ByProperty("none"), draws.with_info(none=np.nan))
    with pytest.raises(TypeError, match=r"`info\['name'\]` of draws must be a number, got str"):
        run(ByProperty("name"), draws.with_info(name=np.asarray("low")))
    with pytest.raises(TypeError, match="must keep the order of networks, got OptimalTransport"):
        ws.PopulationMatching(conditions=ByLoss(), coupling=OptimalTransport())
    assert ws.PopulationMatching(conditions=ByLoss(), coupling=Aligned()).conditions is not None
    with pytest.raises(InputError, match="`dropped` of ByLoss must be from 0 to below 1, got 1.0"):
        ByLoss(dropped=1.0)
    flat = ws.PopulationMatching(Euclidean(), architecture=Plain(Sizes(num_blocks=0)), conditions=ByLoss())
    with pytest.raises(InputError, match="`num_blocks` of a field with conditions must be at least 1, got 0"):
        flat.run(KEY, target, draws=draws)
