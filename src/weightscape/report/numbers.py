"""Numbers as people read them."""

import math

_NAMES = {
    "rmse": "RMSE",
    "nll": "NLL",
    "crps": "CRPS",
    "ece": "ECE",
    "brier": "Brier",
    "coverage_90": "90 % coverage",
}
_MEANINGS = {
    "rmse": "typical error, in the target's units",
    "nll": "negative log density of the targets; smaller is better",
    "crps": "distance of the whole prediction from the target, in its units; smaller is better",
    "ece": "calibration error; 0 is perfect",
    "brier": "squared error of the probabilities; smaller is better",
    "coverage_90": "share of targets inside their 90 % interval; 0.9 is perfect",
    "accuracy": "share of rows whose most probable class is right",
}


def shown(value: object) -> str:
    """A number with three or four digits that matter; anything else as it is."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u2009")
    if not math.isfinite(value):
        return str(value)
    decimals = 3 if abs(value) < 10 else 2 if abs(value) < 100 else 1
    return f"{value:.{decimals}f}" if 0.01 <= abs(value) < 10_000 else f"{value:.4g}"


def percent(share: float) -> str:
    """A share as whole percent; never 100 or 0 unless it is."""
    whole = round(100 * share)
    if whole == 100 and share < 1:
        return "more than 99 %"
    if whole == 0 and share > 0:
        return "less than 1 %"
    return f"{whole} %"


def duration(seconds: float) -> str:
    """A time span in the unit that suits it."""
    if seconds < 100:
        return f"{seconds:.1f} seconds"
    return f"{seconds / 60:.1f} minutes" if seconds < 6000 else f"{seconds / 3600:.1f} hours"


def counted(number: int, noun: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{shown(number)} {noun}" + ("" if number == 1 else "s")


def score_name(name: str) -> str:
    """A score's name as people write it."""
    return _NAMES.get(name, name.replace("_", " "))


def score_meaning(name: str) -> str:
    """A score's name, and what it means."""
    return f"{score_name(name)}: {_MEANINGS[name]}" if name in _MEANINGS else score_name(name)
