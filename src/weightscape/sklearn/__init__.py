"""Estimators for people who live in scikit-learn: fit, predict, and uncertainty that can be taken apart."""

from weightscape.sklearn.classifier import BNNClassifier
from weightscape.sklearn.regressor import BNNRegressor

__all__ = ["BNNClassifier", "BNNRegressor"]
