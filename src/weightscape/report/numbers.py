"""Numbers as people read them."""

import math

_NAMES = {
    "rmse": "RMSE",
    "nll": "NLL",
    "crps": "CRPS",
    "ece": "calibration error",
    "brier": "Brier score",
    "accuracy": "accuracy",
    "coverage_90": "coverage of 90 % intervals",
}


def shown(value: object) -> str:
    """A number with three or four digits that matter; anything else as it is."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u2009")
    if not math.isfinite(value):
        return str(value)
    return f"{value:.3f}" if 0.01 <= abs(value) < 100 else f"{value:.4g}"


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
    """A score's name in words."""
    return _NAMES.get(name, name.replace("_", " "))
