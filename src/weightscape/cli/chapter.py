"""A chapter of the demo: several methods on one data set, side by side."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax

from weightscape.cli.finish import finite, plain_scores
from weightscape.cli.screen import Screen
from weightscape.core import PRNGKey
from weightscape.data import Dataset
from weightscape.draws import Draws
from weightscape.evaluate import scores
from weightscape.inference import HMC, MAP, DeepEnsemble, Method, as_draws
from weightscape.posterior import Model
from weightscape.predictive import Predictive, predict
from weightscape.report import Picture, Table
from weightscape.report.numbers import duration, score_name, shown


class Chapter(NamedTuple):
    """What a chapter adds to the report: a finding in one sentence, a table, pictures, and numbers for JSON."""

    finding: str
    table: Table
    pictures: tuple[Picture, ...]
    result: dict[str, Any]


class Trial(NamedTuple):
    """One method on the data: its draws, its predictions for the test part, their scores, and its time."""

    draws: Draws
    predictive: Predictive
    scores: dict[str, float]
    seconds: float


def methods() -> dict[str, Method]:
    """The methods that the demo compares, from the quickest to the most careful."""
    # Long trajectories: with 32 steps the chains on the cubic have not settled after 500 draws.
    return {"MAP": MAP(), "ensemble": DeepEnsemble(), "HMC": HMC(num_chains=4, num_draws=500, num_leapfrog=128)}


def run_trials(key: PRNGKey, model: Model, dataset: Dataset, screen: Screen) -> dict[str, Trial]:
    """All methods on one data set, each with a key of its own."""
    posterior = model.condition(dataset.train)
    trials = {}
    for i, (name, method) in enumerate(methods().items()):
        began = time.monotonic()
        key_run, key_draws = jax.random.split(jax.random.fold_in(key, i))
        draws = as_draws(key_draws, method.run(key_run, posterior, progress=screen.progress()))
        predictive = predict(draws, dataset.test.x)
        found = plain_scores(scores(predictive, dataset.test.y))
        trials[name] = Trial(draws, predictive, found, time.monotonic() - began)
        screen.say(f"  {name} on {dataset.name}: {duration(trials[name].seconds)}")
    return trials


def comparison(
    title: str, trials: Mapping[str, Trial], wanted: tuple[str, ...], extra: Mapping[str, Mapping[str, float]]
) -> Table:
    """One row for each method: the wanted scores, then extra columns given by name and method."""
    columns = ("method", *(score_name(name) for name in wanted), *extra, "seconds")
    rows = tuple(
        (
            name,
            *(shown(trial.scores[score]) for score in wanted),
            *(shown(values[name]) if name in values else "–" for values in extra.values()),
            f"{trial.seconds:.0f}",
        )
        for name, trial in trials.items()
    )
    return Table(title, columns, rows)


def trial_results(trials: Mapping[str, Trial], extra: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """The numbers of all methods for JSON."""
    return {
        name: {
            **finite(trial.scores),
            **{column: values[name] for column, values in extra.items() if name in values},
            "seconds": trial.seconds,
            "health": str(trial.draws.health),
        }
        for name, trial in trials.items()
    }
