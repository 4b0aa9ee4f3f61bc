"""Figures of flows show the numbers they are given, and the networks that they draw are those of the flow."""

import dataclasses
import functools

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import weightscape as ws
from weightscape.core import InputError
from weightscape.core.facts import Facts
from weightscape.draws import Header
from weightscape.flow.architecture import setting_of
from weightscape.flow.gap import gap_of
from weightscape.flow.target import Target
from weightscape.flow.transport import carry
from weightscape.inference import LogEvidence
from weightscape.report.flow_evidence import plot_log_evidences
from weightscape.report.flow_log_weights import plot_log_weights
from weightscape.report.flow_path import TIMES, functions_on_the_way, plot_path
from weightscape.report.flow_route import route_through
from weightscape.report.flow_training import plot_flow_training
from weightscape.report.flow_weights import plot_weights_beside
from weightscape.report.page import figure_bytes


@pytest.fixture(autouse=True)
def _double(x64):
    """Functions are compared to rounding."""


@functools.cache
def untrained():
    """A line, and a flow on it with numbers that no training made."""
    data = ws.data.load("noisy_line")
    model = ws.Model(ws.networks.MLP(hidden=(2,)), ws.likelihoods.Gaussian(0.2), ws.priors.Normal(1.0))
    posterior = model.condition(data.train)
    method = ws.FlowMatching(
        architecture=ws.flow.Plain(ws.metanet.Sizes(width=8, num_blocks=1)),
        prediction=ws.flow.OfVelocity(),
        solver=ws.flow.FixedSteps(20, diffrax.Tsit5()),
    )
    target = Target(posterior, method.source(posterior))
    zeros = jnp.zeros((2, target.source.layout.size), target.source.layout.dtype)
    model = method.model(jax.random.key(0), setting_of(method.architecture, target, method.path, zeros, zeros))
    shifted = jax.tree.map(lambda leaf: leaf + 0.05 if eqx.is_inexact_array(leaf) else leaf, model)
    return data, method.flow(Header.of(posterior), posterior, shifted, target.source)


def test_a_route_over_one_input_is_the_line_over_the_data():
    data = ws.data.load("noisy_line")
    route = route_through(data)
    x = np.asarray(data.train.x)[:, 0]
    np.testing.assert_array_equal(route.x[:, 0], route.at)
    assert route.at[0] < x.min() and route.at[-1] > x.max() and route.classes is None
    np.testing.assert_allclose(route.rows, x)
    np.testing.assert_allclose(route.y, np.ravel(data.train.y))


def test_a_route_over_several_inputs_is_their_first_principal_direction():
    data = ws.data.load("iris")
    route = route_through(data)
    x = np.asarray(data.train.x, np.float64)
    values, vectors = np.linalg.eigh(np.corrcoef(x.T))
    np.testing.assert_allclose(route.rows.var(), values[-1], rtol=1e-10)
    along = (route.x[-1] - route.x[0]) / (route.at[-1] - route.at[0]) / x.std(axis=0)
    np.testing.assert_allclose(np.abs(along), np.abs(vectors[:, -1]), rtol=1e-8)
    middle = route.x[0] - route.at[0] * along * x.std(axis=0)
    np.testing.assert_allclose(middle, x.mean(axis=0), rtol=1e-10)
    # A row lies where its projection says: going there and back is the same for a row that is on the route.
    np.testing.assert_allclose(((route.x - x.mean(axis=0)) / x.std(axis=0)) @ along, route.at, atol=1e-10)
    assert route.classes == data.classes


def test_the_functions_on_the_way_begin_at_the_source_and_end_at_the_flow():
    data, flow = untrained()
    route = route_through(data)
    functions = functions_on_the_way(jax.random.key(1), flow, route, 3)
    assert functions.shape == (3, len(TIMES), len(route.at), 1)
    sources = jax.vmap(flow.source.sample)(jax.random.split(jax.random.key(1), 3))
    first = jax.vmap(flow.source.position)(sources)
    carried = lambda z: flow.source.position(carry(flow.solver, flow.objective.velocity(flow.model), z))
    last = jax.jit(jax.vmap(carried))(sources)
    # To the solver's error at the end: the steps of a path stop at its times.
    for positions, found in ((first, functions[:, 0]), (last, functions[:, -1])):
        np.testing.assert_allclose(found[:, :, 0], by_hand(flow, positions, route.x), rtol=0, atol=2e-3)
    assert np.max(np.abs(functions[:, 0] - functions[:, -1])) > 0.1


def by_hand(flow, positions, x):
    scaling, network = flow.header.scaling, flow.header.model.network
    inputs = scaling.inputs(jnp.asarray(x))
    said = lambda position: network.apply(flow.header.model.place(position).parameters.network, inputs)
    return np.asarray(jax.vmap(said)(positions))[:, :, 0] * float(scaling.y_scale) + float(scaling.y_mean)


def test_paths_are_drawn_as_curves_of_means_and_of_probabilities():
    line = route_through(ws.data.load("noisy_line"))
    functions = np.random.default_rng(0).normal(size=(4, 5, len(line.at), 1))
    figure = plot_path(line, functions)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["t = 0", "t = 0.25", "t = 0.5", "t = 0.75", "t = 1"]
    np.testing.assert_array_equal(figure.axes[2].lines[1].get_ydata(), functions[1, 2, :, 0])
    np.testing.assert_allclose(figure.axes[3].lines[-1].get_ydata(), functions[:, 3, :, 0].mean(axis=0))
    irises = route_through(ws.data.load("iris"))
    chances = np.random.default_rng(0).dirichlet(np.ones(3), size=(4, 5, len(irises.at)))
    figure = plot_path(irises, chances)
    assert figure.axes[0].get_legend_handles_labels()[1] == list(irises.classes)
    ticks = [each for each in figure.axes[4].lines if each.get_marker() == "|"]
    assert sum(len(each.get_xdata()) for each in ticks) == len(irises.rows)
    np.testing.assert_allclose(figure.axes[4].lines[4].get_ydata(), chances[:, 4, :, 0].mean(axis=0))
    assert len(figure_bytes(figure, "png")) > 1000


def test_weights_are_compared_leaf_by_leaf():
    _, flow = untrained()
    draws = dataclasses.replace(flow, posterior=None).sample(jax.random.key(0), 40)
    twice = draws.map_leaves(lambda leaf: 2 * leaf)
    figure = plot_weights_beside({"chains": draws, "flow": twice})
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "layer0/bias", "layer0/weight", "layer1/bias", "layer1/weight",
    ]  # fmt: skip
    ends = [np.ptp(patch.get_xy()[:, 0]) for patch in figure.axes[0].patches]
    values = np.quantile(
        np.concatenate([np.ravel(d.params.network["layer0"]["bias"]) for d in (draws, twice)]), [0.001, 0.999]
    )
    np.testing.assert_allclose(ends, np.ptp(values))
    assert figure.axes[0].get_legend_handles_labels()[1] == ["chains", "flow"]
    with pytest.raises(InputError, match="must have draws"):
        plot_weights_beside({})


def test_training_is_drawn_against_steps():
    gaps = [{"step": 40, "value": 30.0, "standard_error": 2.0}, {"step": 80, "value": 2.0, "standard_error": 0.5}]
    facts = Facts(losses=[3.0, 2.0, 1.5, 1.2], held_out_losses=[3.0, 2.5], gaps=gaps, num_steps=80)
    left, right = plot_flow_training(facts).axes
    np.testing.assert_array_equal(left.lines[0].get_xydata(), [[20, 3.0], [40, 2.0], [60, 1.5], [80, 1.2]])
    np.testing.assert_array_equal(left.lines[1].get_xydata(), [[40, 3.0], [80, 2.5]])
    np.testing.assert_array_equal(right.lines[0].get_xydata(), [[40, 30.0], [80, 2.0]])
    (bars,) = right.collections
    np.testing.assert_allclose(bars.get_segments(), [[[40, 26], [40, 34]], [[80, 1], [80, 3]]])
    assert right.get_yscale() == "log" and not any("$" in text.get_text() for text in left.get_yticklabels())
    unmeasured = plot_flow_training(facts.plus(gaps=[])).axes[1]
    assert unmeasured.texts[0].get_text() == "not measured" and len(unmeasured.lines) == 0
    with pytest.raises(InputError, match="must have losses"):
        plot_flow_training(Facts())


def test_log_weights_are_shown_from_the_evidence_on_with_their_means():
    generator = np.random.default_rng(0)
    under_flow, under_posterior = generator.normal(-31, 1, 500), generator.normal(-29, 1, (2, 100))
    gap = gap_of(under_posterior, under_flow)
    (axes,) = plot_log_weights(under_flow, under_posterior.ravel(), gap, -30.0).axes
    places = [float(each.get_xdata()[0]) for each in axes.lines]
    np.testing.assert_allclose(places, [under_flow.mean() + 30, under_posterior.mean() + 30, 0.0])
    np.testing.assert_allclose(places[1] - places[0], gap.value)
    assert axes.get_title(loc="left").startswith(f"J = {gap.value:.2f}")


def test_evidences_stand_below_each_other_with_their_errors():
    named = {"flow": LogEvidence(-30.0, "weighed", 0.5), "Laplace, one mode": LogEvidence(-50.0, "Laplace")}
    (axes,) = plot_log_evidences(named).axes
    assert [text.get_text() for text in axes.get_yticklabels()] == list(named)
    np.testing.assert_allclose([bars.get_segments()[0][:, 0] for bars in axes.collections], [[-31, -29], [-50, -50]])
    with pytest.raises(InputError, match="must have some"):
        plot_log_evidences({})
