"""scikit-learn's own law suite, in full and with no failure excused, for both estimators as they come by default."""

import functools

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from weightscape.sklearn import BNNClassifier, BNNRegressor

SLOW = {
    "check_classifier_data_not_an_array",
    "check_classifiers_classes",
    "check_classifiers_train",
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_dtype_object",
    "check_estimators_dtypes",
    "check_estimators_fit_returns_self",
    "check_estimators_nan_inf",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_fit_score_takes_y",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
    "check_regressor_data_not_an_array",
    "check_regressor_multioutput",
    "check_regressors_int",
    "check_regressors_no_decision_function",
    "check_regressors_train",
    "check_supervised_y_2d",
}
"""Laws with data of a shape of their own, which is compiled for seconds; `make test-all` runs them."""


def laws():
    for original in (BNNClassifier(), BNNRegressor()):
        for estimator, check in estimator_checks_generator(original):
            name = (check.func if isinstance(check, functools.partial) else check).__name__
            given = check.keywords if isinstance(check, functools.partial) else {}
            label = "-".join([type(original).__name__, name, *(f"{key}={given[key]}" for key in sorted(given))])
            yield pytest.param(estimator, check, id=label, marks=[pytest.mark.slow] if name in SLOW else [])


@pytest.mark.parametrize(("estimator", "check"), list(laws()))
def test_scikit_learn(estimator, check):
    check(estimator)
