"""What the classifier and the regressor share: fitting, predictions, and how they are pickled.

scikit-learn's rules: the constructor stores its arguments untouched, `fit` checks them, what was learned ends in an
underscore.
"""

import abc
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from weightscape.data import Batch
from weightscape.draws import Draws
from weightscape.inference import LINEARISED, Approximation, Method
from weightscape.likelihoods import Likelihood
from weightscape.networks import MLP
from weightscape.posterior import Model
from weightscape.predictive import Predictive
from weightscape.priors import Normal
from weightscape.sklearn.double import predicted
from weightscape.sklearn.fit import Fit, infer, key_of
from weightscape.sklearn.stored import restore, store

Setting = Any
"""A hyperparameter: any value may be set, `fit` says what is wrong with it."""

Rows = Any
"""Whatever scikit-learn takes for an array: lists, frames, memory maps."""

_STORED = "stored_fit"
_LEARNED = ("model_", "posterior_", "approximation_", "draws_")


class BNN(BaseEstimator, abc.ABC):
    """A Bayesian neural network behind scikit-learn's interface."""

    method: Setting
    hidden: Setting
    activation: Setting
    prior_scale: Setting
    verbose: Setting
    random_state: Setting

    @property
    @abc.abstractmethod
    def default_method(self) -> Method:
        """What `method=None` stands for."""

    def predictive(self, X: Rows) -> Predictive:
        """p(y | x, D) at each row: entropies, the aleatoric and the epistemic part, densities, samples.

        Labels are numbered as in `classes_`. The precision is that of the weights.
        """
        rows = self._rows(X)  # first, since it asks whether there was a fit
        return predicted(self._result, rows)

    def _infer(self, batch: Batch, likelihood: Likelihood) -> None:
        network = MLP(hidden=self.hidden, activation=self.activation)
        model = Model(network, likelihood, Normal(scale=self.prior_scale))
        key = key_of(check_random_state(self.random_state))
        method = self.default_method if self.method is None else self.method
        self._keep(infer(key, model, batch, method, verbose=bool(self.verbose)))

    def _keep(self, fit: Fit) -> None:
        self.model_ = fit.posterior.model
        self.posterior_, self.approximation_, self.draws_ = fit

    def _rows(self, X: Rows) -> np.ndarray:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, reset=False, dtype=[np.float64, np.float32]))

    @property
    def _result(self) -> Draws | Approximation:
        """What predicts: the density where its linearised network does, otherwise the draws."""
        density = self.approximation_
        return self.draws_ if density is None or not density.facts.get(LINEARISED, False) else density

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {**super().__getstate__()}  # pyright: ignore[reportGeneralTypeIssues]  a dict, as pickle wants
        if "draws_" not in state:
            return state
        fit = Fit(*(state[name] for name in _LEARNED[1:]))
        return {name: value for name, value in state.items() if name not in _LEARNED} | {_STORED: store(fit)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: value for name, value in state.items() if name != _STORED})
        if _STORED in state:
            self._keep(restore(state[_STORED]))
