"""A Bayesian neural network for numbers.

p(y | x, D) ≈ (1/n) Σ_i N(y; f(x; θ_i), σ_i²),      θ_i, σ_i ~ p(θ, σ | D)
"""

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from weightscape.core.checks import require_fraction, require_positive
from weightscape.data import Batch, Scaling
from weightscape.inference import HMC, Method
from weightscape.likelihoods import Gaussian
from weightscape.priors import Gamma
from weightscape.sklearn.double import in_double
from weightscape.sklearn.estimator import BNN, Rows, Setting
from weightscape.sklearn.fit import fitted_scaling


class BNNRegressor(RegressorMixin, BNN):
    """A regressor that averages over networks; y may have several columns.

    - `method`: any `Method`, or its name on the command line; None is a short run of HMC, since a single best fit
      takes the noise for signal where rows are few, and an ensemble of such fits does too.
    - `noise`: standard deviation of y around its mean, in the units of y; None infers it.
    - `hidden`, `activation`: units of each hidden layer, and the name of what they apply.
    - `prior_scale`: standard deviation of the normal prior over weights.
    - `scale`: whether the network sees inputs and targets with mean 0 and spread 1.
    - `verbose`: whether to show a bar on a terminal.
    - `random_state`: an int makes fits repeatable.

    Learned: `n_features_in_`, `model_`, `posterior_`, `draws_`, and `approximation_` where the method ends in a density
    (None otherwise).

    Example:
    >>> regressor = BNNRegressor(random_state=0).fit(X, y)              # doctest: +SKIP
    >>> mean, std = regressor.predict(X, return_std=True)               # doctest: +SKIP

    """

    def __init__(
        self,
        method: Setting = None,
        *,
        noise: Setting = None,
        hidden: Setting = (16,),
        activation: Setting = "tanh",
        prior_scale: Setting = 1.0,
        scale: Setting = True,
        verbose: Setting = False,
        random_state: Setting = None,
    ):
        self.method = method
        self.noise = noise
        self.hidden = hidden
        self.activation = activation
        self.prior_scale = prior_scale
        self.scale = scale
        self.verbose = verbose
        self.random_state = random_state

    @property
    def default_method(self) -> Method:
        return HMC(num_chains=4, num_draws=100, num_warmup=150, num_leapfrog=16)

    def fit(self, X: Rows, y: Rows) -> "BNNRegressor":
        """Infer the weights, and the noise where it is not given, from rows and their targets."""
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], multi_output=True, y_numeric=True)
        y = np.asarray(y, np.float64)
        scaling = fitted_scaling(X, y, "regression") if self.scale else None
        self._infer(Batch(X, y, scaling), self._likelihood(scaling))
        return self

    def predict(self, X: Rows, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """The mean of y; with `return_std` also the spread of a new observation, its noise included."""
        rows = self._rows(X)
        mean, std = in_double(self._result, rows, lambda predictive: (predictive.mean, predictive.std))
        return (mean, std) if return_std else mean

    def predict_interval(self, X: Rows, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Ends (lower, upper) that hold a new observation with probability `level`, the rest split evenly."""
        rows = self._rows(X)
        require_fraction("`level` of predict_interval", level)
        lower, upper = in_double(self._result, rows, lambda predictive: predictive.interval(level))
        return lower, upper

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def _likelihood(self, scaling: Scaling | None) -> Gaussian:
        if self.noise is None:
            return Gaussian(scale=Gamma(0.5, 1.0))
        require_positive("`noise` of BNNRegressor", self.noise)
        unit = 1.0 if scaling is None or scaling.y_scale is None else scaling.y_scale
        return Gaussian(scale=self.noise / np.asarray(unit))
