"""AUROC of foreign inputs, against scikit-learn and by enumeration of pairs."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import weightscape as ws
from weightscape.evaluate import auroc, ood_auroc

CATEGORICAL = ws.likelihoods.Categorical(num_classes=3)
INSIDE = np.random.default_rng(0).normal(size=(4, 60, 3)) * 3
OUTSIDE = np.random.default_rng(1).normal(size=(4, 45, 3))


def sklearn_auroc(below, above):
    return roc_auc_score(np.repeat([0, 1], [len(below), len(above)]), np.concatenate([below, above]))


@pytest.mark.parametrize("decimals", [0, 1, 8])
def test_equal_numbers_count_half(decimals):
    rng = np.random.default_rng(2)
    below, above = rng.normal(size=80).round(decimals), rng.normal(0.7, size=50).round(decimals)
    pairs = (above[:, None] > below).mean() + 0.5 * (above[:, None] == below).mean()
    assert auroc(below, above) == pytest.approx(pairs, rel=1e-12)
    assert auroc(below, above) == pytest.approx(sklearn_auroc(below, above), rel=1e-12)
    assert auroc(above, below) == pytest.approx(1 - pairs, rel=1e-12)


def test_the_ends():
    assert auroc([0, 1], [2, 3]) == 1
    assert auroc([2, 3], [0, 1]) == 0
    assert auroc([1, 1], [1]) == 0.5


@pytest.mark.parametrize("by", ["entropy", "mutual_information"])
def test_classes_by_name(by, predictive_of):
    inside, outside = (predictive_of(outputs, CATEGORICAL, y=[0]) for outputs in (INSIDE, OUTSIDE))
    exact = sklearn_auroc(np.asarray(getattr(inside, by)), np.asarray(getattr(outside, by)))
    assert ood_auroc(inside, outside, by=by) == pytest.approx(exact, abs=2e-3)  # near-equal ones may swap by rounding
    assert abs(exact - 0.5) > 0.1


def test_tables_by_a_function():
    inside, outside = (np.random.default_rng(i).dirichlet(np.ones(3) * (1 + i), size=30) for i in (0, 1))
    exact = sklearn_auroc(inside[:, 0], outside[:, 0])
    assert ood_auroc(inside, outside, by=lambda table: table[:, 0]) == pytest.approx(exact, rel=1e-12)


def test_numbers_by_epistemic_std(predictive_of):
    likelihood = ws.likelihoods.Gaussian(scale=0.1)
    inside, outside = (predictive_of(outputs[..., :1], likelihood) for outputs in (INSIDE, OUTSIDE))
    exact = sklearn_auroc(INSIDE[..., 0].std(0), OUTSIDE[..., 0].std(0))
    assert ood_auroc(inside, outside, by="epistemic_std") == pytest.approx(exact, rel=1e-12)


def test_an_unknown_name_lists_the_known(class_predictive):
    with pytest.raises(ValueError, match="`by` of ood_auroc must be a known name, got 'entrop'. Did you mean 'entr"):
        ood_auroc(class_predictive, class_predictive, by="entrop")


def test_no_function_raises(class_predictive, unchecked):
    with pytest.raises(TypeError, match="`by` of ood_auroc must be a function or its name, got int"):
        ood_auroc(class_predictive, class_predictive, by=3)


def test_the_wrong_task_raises(class_predictive):
    with pytest.raises(ValueError, match="`epistemic_std` must be asked of a regression"):
        ood_auroc(class_predictive, class_predictive, by="epistemic_std")


def test_numbers_that_do_not_fit():
    with pytest.raises(ValueError, match="`above` of auroc must have shape"):
        auroc([0.0], [])
