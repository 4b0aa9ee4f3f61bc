"""The report of one run: its scores, its settings, and the pictures that suit its task and inputs."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from weightscape.core import PRNGKey
from weightscape.data import Dataset
from weightscape.draws import Draws
from weightscape.evaluate import pit, reliability
from weightscape.predictive import Predictive
from weightscape.report.bands import Scatter, bands, plot_bands
from weightscape.report.calibration import plot_coverage, plot_reliability
from weightscape.report.chain_checks import chain_pictures, chain_tables, check_chains
from weightscape.report.class_map import plane, plot_class_map
from weightscape.report.describe import describe_draws
from weightscape.report.doubt import plot_doubt
from weightscape.report.numbers import score_meaning, shown
from weightscape.report.parity import plot_parity
from weightscape.report.report import Picture, Report, Table
from weightscape.report.summary import summarise
from weightscape.report.trace import plot_trace
from weightscape.report.weights import plot_weights

_MARGIN = 0.25
_LINE_POINTS = 241
_NUM_BINS = 10


class Fitted(NamedTuple):
    """A run that is done: draws, the data, predictions for the test part, their scores, and predictions elsewhere."""

    draws: Draws
    dataset: Dataset
    predictive: Predictive
    scores: Mapping[str, float]
    predict_at: Callable[[Any], Predictive]


def report_run(key: PRNGKey, fitted: Fitted, settings: Mapping[str, str]) -> Report:
    """The report of a run; `settings` stand before what is known from the draws."""
    dataset = fitted.dataset
    task_pictures = _regression if dataset.task == "regression" else _classification
    checks = check_chains(fitted.draws, dataset.test)
    tables = (score_table("Scores on the test rows", fitted.scores), *chain_tables(fitted.draws, checks))
    pictures = (*task_pictures(fitted), *chain_pictures(checks), *_draws_pictures(key, fitted.draws))
    return Report(
        title=f"{fitted.draws.facts.get('method', 'Draws')} on {dataset.name}",
        summary=summarise(fitted.predictive, dataset.test.y, dataset.target),
        tables=tables,
        pictures=pictures,
        settings={**settings, **describe_draws(fitted.draws)},
    )


def score_table(title: str, scores: Mapping[str, float]) -> Table:
    """Scores as a table of two columns."""
    return Table(
        title, ("score", "value"), tuple((score_meaning(name), shown(value)) for name, value in scores.items())
    )


def line(x: np.ndarray, margin: float = _MARGIN) -> np.ndarray:
    """A line of inputs over the data and `margin` times their span beyond both ends."""
    low, high = float(x.min()), float(x.max())
    reach = margin * (high - low)
    return np.linspace(low - reach, high + reach, _LINE_POINTS)[:, None]


def _regression(fitted: Fitted) -> Iterator[Picture]:
    dataset, predictive = fitted.dataset, fitted.predictive
    y = np.asarray(dataset.test.y)
    if dataset.train.x.shape[1:] == (1,):
        yield _bands(fitted)
    else:
        lower, upper = (np.asarray(end) for end in predictive.interval(0.9))
        figure = plot_parity(y, np.asarray(predictive.mean), lower, upper, target=dataset.target)
        caption = (
            "Each dot is a test row: its prediction with a 90 % interval. "
            "Nine bars in ten should cross the dashed line."
        )
        yield Picture("predicted", "Predicted against observed", caption, figure)
    caption = (
        "Left: where each target fell within its own prediction; flat is calibrated, a hump means intervals that are "
        "too wide, a valley too narrow. Right: below the diagonal the intervals catch too little."
    )
    yield Picture("calibration", "Calibration", caption, plot_coverage(np.asarray(pit(predictive, y))))


def _bands(fitted: Fitted) -> Picture:
    dataset = fitted.dataset
    x = line(np.asarray(dataset.train.x))
    panels = {"": bands(x, fitted.predict_at(x))}
    data = Scatter(np.asarray(dataset.train.x)[:, 0], np.asarray(dataset.train.y))
    figure = plot_bands(panels, data, x_label=dataset.inputs[0] if dataset.inputs else "x", y_label=dataset.target)
    caption = (
        "The dark band is doubt about the function: it should open where there are no data. "
        "The light band holds 90 % of new targets."
    )
    return Picture("predictive", "Predictions", caption, figure)


def _classification(fitted: Fitted) -> Iterator[Picture]:
    dataset, predictive = fitted.dataset, fitted.predictive
    y, probabilities = np.asarray(dataset.test.y), np.asarray(predictive.probabilities)
    if dataset.train.x.shape[1:] == (2,):
        yield _class_map(fitted)
    caption = (
        "Dots on the dashed line are calibrated; below it the model is too sure of itself. Larger dots hold more rows."
    )
    yield Picture("calibration", "Calibration", caption, plot_reliability(reliability(predictive, y, _NUM_BINS)))
    is_right = probabilities.argmax(axis=1) == y
    figure = plot_doubt(np.asarray(predictive.entropy), np.asarray(predictive.mutual_information), is_right)
    caption = "Wrong predictions should lie further to the right than right ones: then doubt is a useful warning."
    yield Picture("doubt", "Doubt", caption, figure)


def _class_map(fitted: Fitted) -> Picture:
    dataset = fitted.dataset
    x, y = np.asarray(dataset.train.x), np.asarray(dataset.train.y)
    grid = plane(x)
    predictive = fitted.predict_at(grid.points)
    figure = plot_class_map(
        grid,
        np.asarray(predictive.probabilities),
        np.asarray(predictive.mutual_information),
        x,
        y,
        classes=dataset.classes or tuple(str(i) for i in range(int(y.max()) + 1)),
        inputs=dataset.inputs or ("x0", "x1"),
    )
    caption = (
        "Left: mixed colours are mixed probabilities. Right: blue is doubt that more data would remove; "
        "it should grow away from the dots."
    )
    return Picture("class-map", "Predicted classes", caption, figure)


def _draws_pictures(key: PRNGKey, draws: Draws) -> Iterator[Picture]:
    caption = "Chains that wander in one common band agree; a trend or separate levels mean that they have not settled."
    yield Picture("trace", "Log density", caption, plot_trace(np.asarray(draws.log_density)))
    caption = "Where the filled histogram follows the line, the data said nothing about these weights."
    yield Picture("weights", "Weights and their prior", caption, plot_weights(key, draws))
