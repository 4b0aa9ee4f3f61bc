"""Comparisons of predictions: scores, nearness and what is behind, against the functions that make each alone."""

import jax
import numpy as np
import pytest

import weightscape as ws
from weightscape.evaluate import (
    Compared,
    Measured,
    Scores,
    compare_predictions,
    halves_nearness,
    nearness,
    score_differences,
    score_errors,
)

KEY = jax.random.key(3)


@pytest.fixture
def three(predictive_of):
    """Class probabilities of three methods at 200 points: one sharp, one dull, one somewhere else."""
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=2, size=(3, 200, 4))
    build = lambda table: predictive_of(table, ws.likelihoods.Categorical(num_classes=4), y=[0])
    return {"sharp": build(3 * logits), "dull": build(logits / 3), "other": build(rng.normal(size=(2, 200, 4)))}


def test_everything_is_what_it_is_alone(three, labels):
    found = compare_predictions(KEY, three, labels, reference="dull")
    key_scores, key_differences = jax.random.split(KEY)
    for name, predictive in three.items():
        alone = score_errors(key_scores, predictive, labels)
        assert dict(found[name].scores) == dict(alone) and found[name].scores.errors == alone.errors
    near = found["sharp"].nearness
    assert near == {
        "agreement": ws.agreement(three["sharp"], three["dull"]),
        "total variation": ws.total_variation(three["sharp"], three["dull"]),
    }
    assert found["dull"].nearness == {} and 0.1 < near["total variation"] < 0.9
    best = min(three, key=lambda name: found[name].scores["nll"])
    assert best == "dull" and found[best].behind is None  # labels are drawn at random
    gap = score_differences(key_differences, three["sharp"], three["dull"], labels)
    assert found["sharp"].behind == Measured(gap["nll"], gap.errors["nll"])
    assert found["sharp"].is_clearly_behind and not found["dull"].is_clearly_behind


def test_without_a_reference_there_are_no_distances(three, labels):
    assert all(one.nearness == {} for one in compare_predictions(KEY, three, labels).values())


def test_what_is_clear_takes_two_errors():
    behind = lambda value: Compared(Scores({}), {}, Measured(value, 1.0)).is_clearly_behind
    assert not behind(1.9) and behind(2.1)


def test_numbers_are_near_by_wasserstein(predictive_of):
    rng = np.random.default_rng(1)
    p, q = (predictive_of(rng.normal(size=(3, 6, 1)), ws.likelihoods.Gaussian(scale=0.5)) for _ in range(2))
    w1, w2 = ws.wasserstein(p, q)
    assert nearness(p, q) == {"W1": w1, "W2": w2} and 0 < w1 < w2


def test_halves_are_every_other_chain_or_draw():
    outputs = np.random.default_rng(2).normal(size=(3, 4, 5, 3)).astype(np.float32)  # chain, draw, point, class
    look_up = lambda params, x: params["table"][x[:, 0].astype(int)]
    network = ws.networks.Function(lambda key, x: {"table": np.zeros((1, 1))}, look_up)
    model = ws.Model(network, ws.likelihoods.Categorical(num_classes=3), ws.priors.Normal())
    x = np.arange(5.0)[:, None]
    batch = ws.Batch(x, np.zeros(5, int))
    draws = ws.Draws(ws.Parameters({"table": outputs}, {}, ()), np.zeros((3, 4), np.float32), model, None, batch)
    softmax = lambda z: np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)
    apart = lambda p, q: np.mean(np.abs(softmax(p).mean((0, 1)) - softmax(q).mean((0, 1))).sum(1)) / 2
    exact = apart(outputs[[0, 2]], outputs[[1]])
    assert halves_nearness(draws, x)["total variation"] == pytest.approx(exact, rel=1e-5)
    exact = apart(outputs[:1, ::2], outputs[:1, 1::2])
    assert halves_nearness(draws[0], x)["total variation"] == pytest.approx(exact, rel=1e-5)
    assert halves_nearness(draws[0, 0], x) is None


def test_what_cannot_be_compared(three, labels):
    with pytest.raises(ValueError, match="`reference` of compare_predictions must be a known name, got 'hmc'"):
        compare_predictions(KEY, three, labels, reference="hmc")
    with pytest.raises(ValueError, match="must hold at least one"):
        compare_predictions(KEY, {}, labels)
