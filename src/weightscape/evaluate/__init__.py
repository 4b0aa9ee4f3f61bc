"""Scores: how good predictions are, and how close to those of a reference."""

from weightscape.evaluate.agreement import agreement, total_variation
from weightscape.evaluate.brier import brier
from weightscape.evaluate.calibration import Reliability, ece, reliability
from weightscape.evaluate.comparison import comparison_table
from weightscape.evaluate.coverage import coverage, interval_width, pit
from weightscape.evaluate.crps import crps, pointwise_crps
from weightscape.evaluate.errors import accuracy, rmse
from weightscape.evaluate.evidences import EvidenceRow, compare_evidence
from weightscape.evaluate.nll import nll
from weightscape.evaluate.pruning import PruningRow, pruning_curve, pruning_text
from weightscape.evaluate.scores import Scores, scores

__all__ = [
    "EvidenceRow",
    "PruningRow",
    "Reliability",
    "Scores",
    "accuracy",
    "agreement",
    "brier",
    "compare_evidence",
    "comparison_table",
    "coverage",
    "crps",
    "ece",
    "interval_width",
    "nll",
    "pit",
    "pointwise_crps",
    "pruning_curve",
    "pruning_text",
    "reliability",
    "rmse",
    "scores",
    "total_variation",
]
