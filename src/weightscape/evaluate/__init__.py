"""Scores: how good predictions are, and how close to those of a reference."""

from weightscape.evaluate.agreement import agreement, total_variation
from weightscape.evaluate.averaging import AveragingRow, averaging_curve
from weightscape.evaluate.baseline import Baseline, FittedBaseline
from weightscape.evaluate.boosted_trees import BoostedTrees
from weightscape.evaluate.bootstrap import bootstrap, paired_difference
from weightscape.evaluate.brier import brier
from weightscape.evaluate.calibration import Reliability, ece, reliability
from weightscape.evaluate.compared import Compared, compare_predictions
from weightscape.evaluate.comparison import comparison_table
from weightscape.evaluate.conformal import conformal_interval, conformal_sets
from weightscape.evaluate.corruptions import ColumnNoise, Contrast, Corruption, GaussianBlur, PixelNoise
from weightscape.evaluate.coverage import coverage, interval_width, pit
from weightscape.evaluate.crps import crps, pointwise_crps
from weightscape.evaluate.curves import CoverageCurve, PitHistogram, coverage_curve, miscalibration_area, pit_histogram
from weightscape.evaluate.detection import auroc, ood_auroc
from weightscape.evaluate.diversity import error_overlap, jensen_shannon
from weightscape.evaluate.errors import accuracy, rmse
from weightscape.evaluate.evidences import EvidenceRow, compare_evidence
from weightscape.evaluate.gaussian_process import GaussianProcess
from weightscape.evaluate.generator_baselines import averages, blends, noisy_copies
from weightscape.evaluate.memorisation import Memorisation, audit, memorisation, nearest_distances, z_u
from weightscape.evaluate.nearest_weights import copy_candidates, matched_distances
from weightscape.evaluate.nearness import halves_nearness, nearness
from weightscape.evaluate.network_features import function_features, weight_features
from weightscape.evaluate.nll import nll
from weightscape.evaluate.pointwise import MeanScore, squared_error, wrong
from weightscape.evaluate.pruning import PruningRow, pruning_curve, pruning_text
from weightscape.evaluate.pseudo_bma import pseudo_bma_plus_weights, pseudo_bma_weights
from weightscape.evaluate.resampling import Measured
from weightscape.evaluate.score_errors import score_differences, score_errors
from weightscape.evaluate.scores import Scores, scores
from weightscape.evaluate.selective import RiskCoverage, aurc, risk_coverage
from weightscape.evaluate.shift import ShiftedSplit, ShiftRow, shift_curve, shift_text, shifted_split
from weightscape.evaluate.stacking import stacking_weights
from weightscape.evaluate.wasserstein import Wasserstein, pointwise_wasserstein, wasserstein
from weightscape.evaluate.weighing import WeighedPredictive, weigh, weighing_text

__all__ = [
    "AveragingRow",
    "Baseline",
    "BoostedTrees",
    "ColumnNoise",
    "Compared",
    "Contrast",
    "Corruption",
    "CoverageCurve",
    "EvidenceRow",
    "FittedBaseline",
    "GaussianBlur",
    "GaussianProcess",
    "MeanScore",
    "Measured",
    "Memorisation",
    "PitHistogram",
    "PixelNoise",
    "PruningRow",
    "Reliability",
    "RiskCoverage",
    "Scores",
    "ShiftRow",
    "ShiftedSplit",
    "Wasserstein",
    "WeighedPredictive",
    "accuracy",
    "agreement",
    "audit",
    "aurc",
    "auroc",
    "averages",
    "averaging_curve",
    "blends",
    "bootstrap",
    "brier",
    "compare_evidence",
    "compare_predictions",
    "comparison_table",
    "conformal_interval",
    "conformal_sets",
    "copy_candidates",
    "coverage",
    "coverage_curve",
    "crps",
    "ece",
    "error_overlap",
    "function_features",
    "halves_nearness",
    "interval_width",
    "jensen_shannon",
    "matched_distances",
    "memorisation",
    "miscalibration_area",
    "nearest_distances",
    "nearness",
    "nll",
    "noisy_copies",
    "ood_auroc",
    "paired_difference",
    "pit",
    "pit_histogram",
    "pointwise_crps",
    "pointwise_wasserstein",
    "pruning_curve",
    "pruning_text",
    "pseudo_bma_plus_weights",
    "pseudo_bma_weights",
    "reliability",
    "risk_coverage",
    "rmse",
    "score_differences",
    "score_errors",
    "scores",
    "shift_curve",
    "shift_text",
    "shifted_split",
    "squared_error",
    "stacking_weights",
    "total_variation",
    "wasserstein",
    "weigh",
    "weighing_text",
    "weight_features",
    "wrong",
    "z_u",
]
