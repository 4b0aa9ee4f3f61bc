"""The pictures of a comparison: predictions, calibration, and what is won for the time."""

from collections.abc import Iterator, Mapping

import numpy as np

from weightscape.cli.contender import Result
from weightscape.data import Dataset
from weightscape.evaluate import coverage_curve, reliability
from weightscape.report import (
    Cost,
    Entry,
    Measure,
    Picture,
    Reference,
    Scatter,
    bands,
    line,
    plane,
    plot_bands,
    plot_class_maps,
    plot_cost,
    plot_coverages,
    plot_reliabilities,
)
from weightscape.report.numbers import score_name

_NUM_BINS = 10


def compare_pictures(
    dataset: Dataset, results: Mapping[str, Result], entries: Mapping[str, Entry], reference: Reference | None
) -> Iterator[Picture]:
    """The pictures that suit the task, the inputs, and what is known."""
    if not results:
        return
    if all(result.picture is not None for result in results.values()):
        yield _predictions(dataset, results)
    yield _calibration(dataset, results)
    yield _cost(entries, reference)


def _predictions(dataset: Dataset, results: Mapping[str, Result]) -> Picture:
    x, y = np.asarray(dataset.train.x), np.asarray(dataset.train.y)
    made = {name: result.picture for name, result in results.items() if result.picture is not None}
    if dataset.task == "regression":
        at = line(x)
        panels = {name: bands(at, predictive) for name, predictive in made.items()}
        x_label = dataset.inputs[0] if dataset.inputs else "x"
        caption = "The dark band is doubt about the function: it should open where there are no data."
        figure = plot_bands(panels, Scatter(x[:, 0], y), x_label=x_label, y_label=dataset.target)
        return Picture("predictive", "Predictions", caption, figure)
    tables = {name: np.asarray(predictive.probabilities) for name, predictive in made.items()}
    classes = dataset.classes or tuple(str(i) for i in range(int(y.max()) + 1))
    figure = plot_class_maps(plane(x), tables, x, y, classes=classes, inputs=dataset.inputs or ("x0", "x1"))
    caption = "Mixed colours are mixed probabilities: away from the dots nobody can be sure."
    return Picture("class-map", "Predicted classes", caption, figure)


def _calibration(dataset: Dataset, results: Mapping[str, Result]) -> Picture:
    y, title = np.asarray(dataset.test.y), "Calibration"
    if dataset.task == "classification":
        curves = {name: reliability(result.test, y, _NUM_BINS) for name, result in results.items()}
        caption = "On the dashed line confidence is deserved; below it a method is too sure of itself. Ten bins."
        return Picture("calibration", title, caption, plot_reliabilities(curves))
    shares = {name: coverage_curve(result.test, y) for name, result in results.items()}
    caption = "On the dashed line intervals keep their promise; below it they catch too little."
    return Picture("calibration", title, caption, plot_coverages(shares))


def _cost(entries: Mapping[str, Entry], reference: Reference | None) -> Picture:
    found = {name: (one.seconds or 0.0, one.compared) for name, one in entries.items() if one.compared is not None}
    names = list(dict.fromkeys(name for _, compared in found.values() for name in compared.nearness))
    if reference is None or not names:
        costs = {name: Cost(seconds, compared.scores["nll"]) for name, (seconds, compared) in found.items()}
        caption = "Down and to the left is better: a smaller NLL on the test rows, sooner."
        return Picture("cost", "NLL against time", caption, plot_cost({score_name("nll"): Measure(costs)}))
    measures = {
        f"{name} with {reference.name}" if name == "agreement" else f"{name} to {reference.name}": Measure(
            {each: Cost(seconds, one.nearness[name]) for each, (seconds, one) in found.items() if name in one.nearness},
            None if reference.halves is None else reference.halves[name],
            f"two halves of {reference.name}",
        )
        for name in names
    }
    seconds = entries[reference.name].seconds or 0
    caption = (
        f"How near each method comes to {reference.name}, which took {seconds:.0f} seconds; to the left is sooner."
    )
    return Picture("cost", f"Nearness to {reference.name} against time", caption, plot_cost(measures))
