"""Scores: how good predictions are, and how close to those of a reference."""

from weightscape.evaluate.agreement import agreement, total_variation
from weightscape.evaluate.averaging import AveragingRow, averaging_curve
from weightscape.evaluate.bootstrap import bootstrap, paired_difference
from weightscape.evaluate.brier import brier
from weightscape.evaluate.calibration import Reliability, ece, reliability
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
from weightscape.evaluate.generator_baselines import averages, noisy_copies
from weightscape.evaluate.memorisation import Memorisation, memorisation, nearest_distances, z_u
from weightscape.evaluate.network_features import function_features, weight_features
from weightscape.evaluate.nll import nll
from weightscape.evaluate.pointwise import MeanScore, squared_error, wrong
from weightscape.evaluate.pruning import PruningRow, pruning_curve, pruning_text
from weightscape.evaluate.resampling import Measured
from weightscape.evaluate.score_errors import score_differences, score_errors
from weightscape.evaluate.scores import Scores, scores
from weightscape.evaluate.selective import RiskCoverage, aurc, risk_coverage
from weightscape.evaluate.shift import ShiftedSplit, ShiftRow, shift_curve, shift_text, shifted_split
from weightscape.evaluate.wasserstein import Wasserstein, pointwise_wasserstein, wasserstein

__all__ = [
    "AveragingRow",
    "ColumnNoise",
    "Contrast",
    "Corruption",
    "CoverageCurve",
    "EvidenceRow",
    "GaussianBlur",
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
    "accuracy",
    "agreement",
    "aurc",
    "auroc",
    "averages",
    "averaging_curve",
    "bootstrap",
    "brier",
    "compare_evidence",
    "comparison_table",
    "conformal_interval",
    "conformal_sets",
    "coverage",
    "coverage_curve",
    "crps",
    "ece",
    "error_overlap",
    "function_features",
    "interval_width",
    "jensen_shannon",
    "memorisation",
    "miscalibration_area",
    "nearest_distances",
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
    "total_variation",
    "wasserstein",
    "weight_features",
    "wrong",
    "z_u",
]
