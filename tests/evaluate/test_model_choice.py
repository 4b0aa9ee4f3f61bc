"""The experiment on model choice: its closed form against quadrature of the posterior, its summary, a tiny run."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from experiments import model_choice
from experiments.choice import collapsed
from experiments.choice.problem import NOISE, Candidate, posterior, rows
from scipy import stats
from scipy.special import logsumexp

from weightscape.inference import Evidence, LogEvidence


def test_the_last_layer_is_integrated_as_a_normal_of_all_rows():
    generator = np.random.default_rng(0)
    w, c = generator.normal(size=(2, 3, 5))
    x, y = rows()
    for point in range(5):
        features = np.column_stack([np.ones_like(x), *(np.tanh(w[k, point] * x + c[k, point]) for k in range(3))])
        marginal = NOISE**2 * np.eye(len(x)) + 1.5**2 * features @ features.T
        exact = stats.multivariate_normal(np.zeros(len(x)), marginal).logpdf(y)
        found = collapsed.log_marginal(Candidate(3, 1.5), w[:, [point]], c[:, [point]])
        np.testing.assert_allclose(found, [exact], rtol=1e-9)


def test_the_networks_likelihood_integrates_to_it(x64):
    """Over the last layer of one unit, on a grid that a smooth integrand leaves no error to."""
    target, nodes, scale = posterior(Candidate(1, 0.7)), np.linspace(-9, 9, 301), 0.7
    v, b = (jnp.asarray(scale * each.ravel()) for each in np.meshgrid(nodes, nodes))
    w, c = 1.3, -0.4

    def log_likelihood(v, b):
        like = target.sample_prior_position(jax.random.key(0))
        full = lambda leaf, value: jnp.full(leaf.shape, value)
        first = {"weight": w, "bias": c}
        last = {"weight": v, "bias": b}
        network = {
            "layer0": {name: full(like.network["layer0"][name], first[name]) for name in first},
            "layer1": {name: full(like.network["layer1"][name], last[name]) for name in last},
        }
        return target.log_likelihood(like._replace(network=network))

    terms = np.asarray(jax.jit(jax.vmap(log_likelihood))(v, b)).reshape(301, 301)
    prior = stats.norm.logpdf(nodes)
    found = logsumexp(terms + prior[:, None] + prior[None]) + 2 * np.log(nodes[1] - nodes[0])
    exact = collapsed.log_marginal(Candidate(1, scale), np.array([[w]]), np.array([[c]]))
    np.testing.assert_allclose(found, exact, rtol=1e-6)


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_a_grid_and_quasi_monte_carlo_agree(scale):
    grid = collapsed.collapsed_evidence(Candidate(1, scale))
    sequences = collapsed._by_sequences(Candidate(1, scale), 15)
    assert 0 < sequences.standard_error < 0.05
    # Student's t with 15 degrees: 8 standard errors fail once in a million.
    assert abs(sequences.value - grid.value) < 8 * sequences.standard_error


def test_the_summary_counts_errors_and_leaves_out_what_cannot_be_trusted(capsys):
    def found(closed, ladder, flow, pareto_k=0.3):
        value = lambda number, error=0.0: LogEvidence(number, "exact", error)
        weighed = Evidence(flow, 0.1, 500.0, 0.5, pareto_k)
        names = (model_choice.CLOSED, model_choice.LADDER, model_choice.FLOW)
        rest = {name: value(closed - 1) for name in (model_choice.LAPLACE, model_choice.COPIES, model_choice.ELBO)}
        told = zip(names, (value(closed), value(ladder, 0.2), value(flow, 0.1)), strict=True)
        return model_choice.Found({**dict(told), **rest}, weighed, {model_choice.FLOW: 20.0})

    models = {
        Candidate(1, 1.0): found(-10.0, -10.7, -10.3),
        Candidate(2, 1.0): found(-9.0, -9.9, -9.5),
        Candidate(3, 1.0): found(-9.5, -9.4, -3.0, pareto_k=0.9),
    }
    lines = {line.split(" | ")[0].removeprefix("| "): line for line in model_choice.summary(models)}
    assert lines["ladder"] == "| ladder | 3 units, prior 1 | -0.900 | 1 of 3 | – |"
    assert lines["flow"] == "| flow | 2 units, prior 1 | -0.500 | 1 of 2 | 60 |"
    assert lines["ELBO"] == "| ELBO | 2 units, prior 1 | -1.000 | – | – |"
    cells = model_choice.row(Candidate(3, 1.0), models[Candidate(3, 1.0)]).split(" | ")
    assert cells[1:7] == ["10", "-9.500", "-9.400 ± 0.2", "-3.000 ± 0.1, not trusted", "50.0%", "0.90"]


@pytest.mark.slow  # compiling takes all the time
def test_a_tiny_run_prints_a_row_for_each_model_and_a_summary(capsys):
    found = model_choice.main(model_choice.TINY)
    printed = capsys.readouterr().out.splitlines()
    assert printed[2].startswith("| 2 units, prior 1 | 7 | -1") and len(printed) == 3 + 1 + 2 + 6
    ((candidate, told),) = found.items()
    assert candidate == Candidate(2, 1.0) and set(told.seconds) == {"ladder", "flow", "Laplace", "ELBO"}
    assert told.values["its copies"].value - told.values["Laplace"].value == pytest.approx(np.log(2 * 2**2))
    ladder = told.values["ladder"]
    # A few draws of a few chains: within a nat is all that they tell.
    assert abs(ladder.value - told.values["closed form"].value) < 1 + 6 * ladder.standard_error
