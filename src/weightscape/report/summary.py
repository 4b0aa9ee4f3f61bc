"""One sentence in plain words: what the test rows say about the predictions."""

import numpy as np
from jaxtyping import ArrayLike

from weightscape.predictive import Predictive
from weightscape.report.numbers import counted, percent, shown


def summarise(predictive: Predictive, y: ArrayLike, target: str) -> str:
    """How often the intervals or the most probable classes were right on these rows."""
    targets = np.asarray(y)
    if predictive.task == "regression":
        return _numbers(predictive, targets, target)
    return _classes(predictive, targets)


def _numbers(predictive: Predictive, y: np.ndarray, target: str) -> str:
    lower, upper = (np.asarray(end) for end in predictive.interval(0.9))
    caught = float(np.mean((y >= lower) & (y <= upper)))
    error = float(np.sqrt(np.mean((np.asarray(predictive.mean) - y) ** 2)))
    rows = counted(len(y), "test row")
    return (
        f"On the {rows} the 90 % intervals caught {percent(caught)} of the targets; "
        f"predictions of {target} were off by {shown(error)} (root mean square)."
    )


def _classes(predictive: Predictive, y: np.ndarray) -> str:
    probabilities = np.asarray(predictive.probabilities)
    right = float(np.mean(probabilities.argmax(axis=1) == y))
    expected = float(np.mean(probabilities.max(axis=1)))
    rows = counted(len(y), "test row")
    return (
        f"On the {rows} the most probable class was right for {percent(right)}; "
        f"the model itself expected {percent(expected)}."
    )
