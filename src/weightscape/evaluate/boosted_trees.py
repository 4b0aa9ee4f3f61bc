"""Gradient-boosted trees as a baseline: what wins on tables, by scikit-learn.

    F_m = F_{m−1} + η tree_m,       tree_m fitted to the gradient of the loss at F_{m−1}

Classes have the probabilities of the boosted logits. Numbers are predicted as N(F(x), σ²), where σ² is the mean square
of the residuals in a cross-validation: the same everywhere, noise and the error of F together, and all of it is
counted as noise, since one ensemble of trees says nothing about its own doubt.

Reference: Friedman, Greedy function approximation: a gradient boosting machine (2001), algorithm 1.
"""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import ArrayLike, Float
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import KFold, cross_val_predict

from weightscape.core.checks import require_count, require_positive
from weightscape.core.config import registered
from weightscape.data import Batch
from weightscape.evaluate.baseline import (
    Baseline,
    FittedBaseline,
    Table,
    array_bytes,
    class_table,
    scaled_columns,
    scaled_targets,
    threads,
    told,
)


@registered("evaluate.BoostedTrees")
@dataclasses.dataclass(frozen=True)
class BoostedTrees(Baseline):
    """Histogram-based gradient boosting.

    - `num_rounds`, `learning_rate`: m and η; rounds are not stopped early.
    - `least_rows`: that a leaf holds; fewer than scikit-learn's own 20, with which small tables have hardly a tree.
    - `num_folds`: of the cross-validation that finds σ.
    """

    num_rounds: int = 100
    learning_rate: float = 0.1
    least_rows: int = 5
    num_folds: int = 5

    def __post_init__(self):
        require_count("`num_rounds` of BoostedTrees", self.num_rounds)
        require_positive("`learning_rate` of BoostedTrees", self.learning_rate)
        require_count("`least_rows` of BoostedTrees", self.least_rows)
        require_count("`num_folds` of BoostedTrees", self.num_folds, least=2)

    def fit(self, train: Batch, num_classes: int | None, *, seed: int) -> FittedBaseline:
        with threads(len(train)):
            if num_classes is None:
                return self._fit_numbers(train, seed)
            return self._fit_classes(train, num_classes, seed)

    def _fit_numbers(self, train: Batch, seed: int) -> FittedBaseline:
        x, y = scaled_columns(train.x, train.scaling), scaled_targets(train)
        learner = HistGradientBoostingRegressor(**self._options(seed))
        noise, warned = told(lambda: self._noise(learner, x, y, seed))
        model, notes = told(lambda: learner.fit(x, y))

        def table(new: ArrayLike) -> Table:
            x_new = scaled_columns(new, train.scaling)
            with threads(len(x_new)):
                mean = model.predict(x_new)
            return np.stack([mean, np.zeros(len(mean)), np.full(len(mean), noise)], axis=1)

        notes = tuple(dict.fromkeys((*warned, *notes)))
        return FittedBaseline(table, "regression", train.scaling, array_bytes(model), notes)

    def _fit_classes(self, train: Batch, num_classes: int, seed: int) -> FittedBaseline:
        x = scaled_columns(train.x, train.scaling)
        learner = HistGradientBoostingClassifier(**self._options(seed))
        model, notes = told(lambda: learner.fit(x, np.asarray(train.y)))

        def table(new: ArrayLike) -> Table:
            x_new = scaled_columns(new, train.scaling)
            with threads(len(x_new)):
                found = np.asarray(model.predict_proba(x_new))
            return class_table(found, np.asarray(model.classes_), num_classes)

        return FittedBaseline(table, "classification", train.scaling, array_bytes(model), notes)

    def _noise(
        self,
        learner: HistGradientBoostingRegressor,
        x: Float[np.ndarray, "point input"],
        y: Float[np.ndarray, " point"],
        seed: int,
    ) -> float:
        folds = KFold(min(self.num_folds, len(y)), shuffle=True, random_state=seed)
        return float(np.sqrt(np.mean((np.asarray(cross_val_predict(learner, x, y, cv=folds)) - y) ** 2)))

    def _options(self, seed: int) -> dict[str, Any]:
        return {
            "max_iter": self.num_rounds,
            "learning_rate": float(self.learning_rate),
            "min_samples_leaf": self.least_rows,
            "early_stopping": False,
            "random_state": seed,
        }
