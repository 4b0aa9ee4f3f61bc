"""The demo's second chapter: irises, and how near cheaper methods come to the posterior."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from weightscape.cli.chapter import Chapter, Trial, comparison, run_trials, trial_results
from weightscape.cli.screen import Screen
from weightscape.core import PRNGKey
from weightscape.data import Dataset
from weightscape.evaluate import agreement, reliability, total_variation
from weightscape.likelihoods import Categorical
from weightscape.networks import MLP
from weightscape.posterior import Model
from weightscape.priors import Normal
from weightscape.report import Picture, plot_doubt, plot_reliability, plot_weights
from weightscape.report.numbers import percent, shown

_SCORES = ("accuracy", "nll", "brier", "ece")


class Irises(NamedTuple):
    """The chapter, and HMC's part in it, which the next chapter learns from."""

    chapter: Chapter
    hmc: Trial


def tell_iris(key: PRNGKey, dataset: Dataset, screen: Screen) -> Irises:
    """MAP, a deep ensemble and HMC on the irises."""
    model = Model(MLP(hidden=(16,), activation="tanh"), Categorical(num_classes=3), Normal(scale=1.0))
    trials = run_trials(key, model, dataset, screen)
    nearness = _nearness(trials)
    distances = nearness["total variation"]
    finding = (
        f"On the irises, HMC names {percent(trials['HMC'].scores['accuracy'])} of the test flowers rightly; a deep "
        f"ensemble's probabilities are {shown(distances['ensemble'])} away from it in total variation, MAP's "
        f"{shown(distances['MAP'])}."
    )
    table = comparison("Irises: scores on the test rows, and distance to HMC", trials, _SCORES, nearness)
    hmc = trials["HMC"]
    return Irises(Chapter(finding, table, _pictures(key, dataset, hmc), trial_results(trials, nearness)), hmc)


def _nearness(trials: Mapping[str, Trial]) -> dict[str, dict[str, float]]:
    """Agreement of labels and total variation of probabilities between each other method and HMC."""
    reference = trials["HMC"].predictive
    others = {name: trial.predictive for name, trial in trials.items() if name != "HMC"}
    return {
        "agreement": {name: float(agreement(p, reference)) for name, p in others.items()},
        "total variation": {name: float(total_variation(p, reference)) for name, p in others.items()},
    }


def _pictures(key: PRNGKey, dataset: Dataset, hmc: Trial) -> tuple[Picture, ...]:
    y, probabilities = np.asarray(dataset.test.y), np.asarray(hmc.predictive.probabilities)
    is_right = probabilities.argmax(axis=1) == y
    entropy, mutual_information = np.asarray(hmc.predictive.entropy), np.asarray(hmc.predictive.mutual_information)
    return (
        Picture(
            "iris-calibration",
            "HMC on the irises: calibration",
            "Dots on the dashed line are calibrated; below it the model is too sure of itself.",
            plot_reliability(reliability(hmc.predictive, y, 10)),
        ),
        Picture(
            "iris-doubt",
            "HMC on the irises: doubt",
            "Wrong predictions should lie further to the right: then doubt is a useful warning.",
            plot_doubt(entropy, mutual_information, is_right),
        ),
        Picture(
            "iris-weights",
            "HMC on the irises: weights and their prior",
            "Where the filled histogram follows the line, the data said nothing about these weights.",
            plot_weights(key, hmc.draws),
        ),
    )
