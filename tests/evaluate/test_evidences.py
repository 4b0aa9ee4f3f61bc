"""Evidences side by side: closed forms where there are any, and what can be trusted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.known import linear

import weightscape as ws
from weightscape.core import InputError
from weightscape.core.progress import Silent
from weightscape.inference import Full, Gaussian
from weightscape.inference.method import DensityMethod
from weightscape.predictive import predict_result
from weightscape.report import Candidate, evidence_table, plot_evidence
from weightscape.report.page import figure_bytes

KEY = jax.random.key(0)
LAPLACE = ws.Laplace(mode=ws.MAP(num_steps=800))


def test_rows_hold_the_exact_evidence_and_the_exact_score():
    narrow, wide = linear(prior_scale=0.1), linear(prior_scale=1.0)
    posteriors = {"narrow": narrow.posterior, "wide": wide.posterior}
    test = ws.Batch(wide.x[:5] + 0.1, wide.y[:5])
    rows = ws.compare_evidence(KEY, posteriors, {"Laplace": LAPLACE}, test=test, num_draws=200)
    assert [(row.model, row.method) for row in rows] == [("narrow", "Laplace"), ("wide", "Laplace")]
    for row, known in zip(rows, (narrow, wide), strict=True):
        np.testing.assert_allclose(row.own.value, known.log_evidence, atol=0.02)
        assert row.own.kind == "Laplace"
        # Draws of the exact posterior all have the same weight.
        np.testing.assert_allclose(row.weighed.value, known.log_evidence, atol=0.02)
        assert row.weighed.efficiency > 0.99 and row.weighed.is_trusted
        x, y = np.asarray(test.x), np.asarray(test.y)
        variance = np.einsum("ni,ij,nj->n", x, known.covariance, x) + known.noise**2
        exact = stats.norm.logpdf(y, x @ known.mean, np.sqrt(variance)).mean()
        np.testing.assert_allclose(row.test_log_density, exact, atol=0.01)
    table = evidence_table("two priors", rows)
    assert len(table.rows) == 2 and len(table.rows[0]) == len(table.columns)
    candidates = [Candidate("narrow", 2, 0.1), Candidate("wide", 2, 1.0)]
    assert figure_bytes(plot_evidence(candidates, rows), "png").startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_ladder_of_temperatures_stands_beside_densities_and_other_chains_say_nothing():
    known = linear()
    ladder = ws.ParallelTempering(num_chains=2, num_draws=200, num_warmup=200)
    chains = ws.HMC(num_chains=2, num_draws=20, num_warmup=100)
    rows = ws.compare_evidence(KEY, {"one": known.posterior}, {"ladder": ladder, "HMC": chains})
    assert rows[0].own.kind == "stepping stones"
    assert abs(rows[0].own.value - known.log_evidence) < 6 * rows[0].own.standard_error < 3
    assert rows[1].own is None and rows[1].weighed is None and rows[1].test_log_density is None
    assert evidence_table("", rows).rows[1][2:5] == ("–", "–", "–")


class Displaced(DensityMethod):
    """A density beside the exact posterior, and twice as wide; like a flow it has no evidence of its own."""

    mean: np.ndarray
    covariance: np.ndarray

    def approximate(self, key, posterior, around):
        around.progress.start("looking", 3)
        root = np.linalg.cholesky(self.covariance)
        moved = jnp.asarray(self.mean + root @ np.array([0.5, -0.5, 0.5]), jnp.float32)
        location = {"layer0": {"weight": moved[:, None]}}
        like = jax.tree.map(jnp.zeros_like, posterior.sample_prior_position(key))
        mean = jax.tree.unflatten(jax.tree.structure(like), jax.tree.leaves(location))
        return Gaussian.over(posterior, mean, Full.of_cholesky(jnp.asarray(1.4 * root, jnp.float32)))


class Heard(Silent):
    def __init__(self):
        self.labels = []

    def start(self, label, total):
        self.labels.append((label, total))


def test_a_density_without_a_value_of_its_own_is_weighed_and_so_are_its_predictions():
    known, heard = linear(), Heard()
    x = known.x[:3] + np.array([4.0, -6.0, 2.0])
    y = x @ known.mean + np.array([0.3, -0.4, 0.2])
    method = Displaced(known.mean, known.covariance)
    arguments = {"test": ws.Batch(x, y), "num_draws": 20_000, "progress": heard}
    (row,) = ws.compare_evidence(KEY, {"one": known.posterior}, {"moved": method}, **arguments)
    assert row.own is None and row.verdict.kind == "weighed" and row.verdict.is_trusted
    assert row.weighed.efficiency < 0.8 and row.weighed.standard_error < 0.01
    assert abs(row.verdict.value - known.log_evidence) < 5 * row.verdict.standard_error
    variance = np.einsum("ni,ij,nj->n", x, known.covariance, x) + known.noise**2
    exact = stats.norm.logpdf(y, x @ known.mean, np.sqrt(variance)).mean()
    # By weighed draws the score is right but for the Monte-Carlo error, by draws as they come it is off by far.
    plain = ws.predict(Displaced.run(method, KEY, known.posterior).sample(KEY, 20_000), x)
    assert abs(float(np.mean(plain.log_density(y))) - exact) > 0.1
    np.testing.assert_allclose(row.test_log_density, exact, atol=0.03)
    assert heard.labels == [("1 of 1, one, moved: looking", 3)]


def test_models_of_different_data_are_not_compared():
    known = linear()
    fewer = known.posterior.model.condition(ws.Batch(known.x[:7], known.y[:7]))
    with pytest.raises(InputError, match="must have seen the same data"):
        ws.compare_evidence(KEY, {"a": known.posterior, "b": fewer}, {"Laplace": LAPLACE})


def test_laplace_predicts_by_the_linearised_network_and_draws_by_themselves():
    data = ws.data.load("iris")
    model = ws.Model(ws.networks.MLP(hidden=(8,)), ws.likelihoods.Categorical(3), ws.priors.Normal(1.0))
    posterior = model.condition(data.train)
    found = LAPLACE.run(KEY, posterior)
    best = predict_result(KEY, found, data.test.x)
    linearised = ws.predict_linearised(found, data.test.x, link=ws.FunctionSamples(KEY, 1000))
    np.testing.assert_array_equal(best.probabilities, linearised.probabilities)
    sampled = found.sample(KEY, 1000)
    np.testing.assert_array_equal(
        predict_result(KEY, sampled, data.test.x).probabilities, ws.predict(sampled, data.test.x).probabilities
    )
    # Networks drawn from it underfit by far: the reason why they are not used.
    score = lambda predictive: float(np.mean(predictive.log_density(data.test.y)))
    assert score(best) > score(ws.predict(sampled, data.test.x)) + 0.2
    exact = ws.Laplace("full", "hessian", mode=ws.MAP(num_steps=800)).run(KEY, linear().posterior)
    drawn = predict_result(KEY, exact, linear().x[:3])
    np.testing.assert_array_equal(drawn.mean, ws.predict(exact.sample(KEY, 1000), linear().x[:3]).mean)
