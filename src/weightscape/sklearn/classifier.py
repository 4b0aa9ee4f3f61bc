"""A Bayesian neural network that classifies.

p(y = c | x, D) ≈ (1/n) Σ_i softmax(f(x; θ_i))_c,      θ_i ~ p(θ | D)
"""

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from weightscape.core.checks import require
from weightscape.data import Batch
from weightscape.inference import DeepEnsemble, Method
from weightscape.likelihoods import Categorical
from weightscape.sklearn.double import in_double
from weightscape.sklearn.estimator import BNN, Rows, Setting
from weightscape.sklearn.fit import fitted_scaling


class BNNClassifier(ClassifierMixin, BNN):
    """A classifier that averages over networks.

    - `method`: any `Method`, or its name on the command line; None is a small deep ensemble.
    - `hidden`, `activation`: units of each hidden layer, and the name of what they apply.
    - `prior_scale`: standard deviation of the normal prior over weights.
    - `scale`: whether the network sees inputs with mean 0 and spread 1.
    - `verbose`: whether to show a bar on a terminal.
    - `random_state`: an int makes fits repeatable.

    Learned: `classes_`, `n_features_in_`, `model_`, `posterior_`, `draws_`, and `approximation_` where the method ends
    in a density (None otherwise).

    Example:
    >>> classifier = BNNClassifier(method="hmc", random_state=0).fit(X, y)          # doctest: +SKIP
    >>> classifier.predict_proba(X), classifier.predictive(X).mutual_information    # doctest: +SKIP

    """

    def __init__(
        self,
        method: Setting = None,
        *,
        hidden: Setting = (16,),
        activation: Setting = "tanh",
        prior_scale: Setting = 1.0,
        scale: Setting = True,
        verbose: Setting = False,
        random_state: Setting = None,
    ):
        self.method = method
        self.hidden = hidden
        self.activation = activation
        self.prior_scale = prior_scale
        self.scale = scale
        self.verbose = verbose
        self.random_state = random_state

    @property
    def default_method(self) -> Method:
        return DeepEnsemble(num_members=8, num_steps=300, learning_rate=0.05)

    def fit(self, X: Rows, y: Rows) -> "BNNClassifier":
        """Infer the weights from rows and their labels."""
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        came = f"1 class, {self.classes_[0]!s}"
        asked = "`y` of BNNClassifier must have two classes or more"
        require(len(self.classes_) > 1, asked, came, "Pass rows of other classes.")
        scaling = fitted_scaling(X, codes, "classification") if self.scale else None
        self._infer(Batch(X, codes, scaling), Categorical(num_classes=len(self.classes_)))
        return self

    def predict_proba(self, X: Rows) -> np.ndarray:
        """The probability of each class, in the order of `classes_`."""
        rows = self._rows(X)
        return in_double(self._result, rows, lambda predictive: (predictive.probabilities,))[0]

    def predict(self, X: Rows) -> np.ndarray:
        """The class of highest probability."""
        probabilities = self.predict_proba(X)  # before `classes_`, since it asks whether there was a fit
        return self.classes_[probabilities.argmax(axis=1)]
