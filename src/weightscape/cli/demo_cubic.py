"""The demo's first chapter: a noisy cubic with a gap, where doubt should open and noise should not."""

from collections.abc import Mapping

import numpy as np

from weightscape.cli.chapter import Chapter, Trial, comparison, run_trials, trial_results
from weightscape.cli.screen import Screen
from weightscape.core import PRNGKey
from weightscape.data import Dataset
from weightscape.evaluate import pit
from weightscape.likelihoods import Gaussian
from weightscape.networks import MLP
from weightscape.posterior import Model
from weightscape.predictive import predict
from weightscape.priors import FanInNormal, Gamma
from weightscape.report import Picture, Scatter, bands, plot_bands, plot_coverage, plot_trace
from weightscape.report.numbers import shown

_SCORES = ("rmse", "nll", "coverage_90")
_TITLES = {"MAP": "MAP: a single fit", "ensemble": "Deep ensemble: ten fits", "HMC": "HMC: the posterior"}
_REGIONS = {"doubt on data": (1.0, 4.0), "in the gap": (0.0, 0.7), "outside": (5.0, 6.0)}
"""Columns of the table, and |x| from where to where they look; doubt is the epistemic standard deviation."""


def tell_cubic(key: PRNGKey, dataset: Dataset, screen: Screen) -> Chapter:
    """MAP, a deep ensemble and HMC on the cubic."""
    # Wide priors: functions of this network bend as sharply as the cubic does.
    prior = FanInNormal(scale=3.0, bias_scale=3.0)
    model = Model(MLP(hidden=(50,), activation="relu"), Gaussian(scale=Gamma(0.5, 1.0)), prior)
    trials = run_trials(key, model, dataset, screen)
    doubt = _doubt_by_region(dataset, trials)
    on_data, in_gap, outside = (shown(values["HMC"]) for values in doubt.values())
    finding = (
        f"On the noisy cubic, HMC's doubt about the function grows from {on_data} where there are data to {in_gap} in "
        f"the gap and {outside} outside; a single fit has none anywhere."
    )
    table = comparison("Noisy cubic: scores on the test line, and doubt by region", trials, _SCORES, doubt)
    return Chapter(finding, table, _pictures(dataset, trials), trial_results(trials, doubt))


def _doubt_by_region(dataset: Dataset, trials: Mapping[str, Trial]) -> dict[str, dict[str, float]]:
    """The mean epistemic standard deviation over the test points of each region."""
    x = np.abs(np.asarray(dataset.test.x)[:, 0])
    return {
        region: {
            name: float(np.asarray(trial.predictive.epistemic_std)[(x >= low) & (x <= high)].mean())
            for name, trial in trials.items()
        }
        for region, (low, high) in _REGIONS.items()
    }


def _pictures(dataset: Dataset, trials: Mapping[str, Trial]) -> tuple[Picture, ...]:
    x = np.linspace(-6.0, 6.0, 241)[:, None]
    panels = {_TITLES[name]: bands(x, predict(trial.draws, x)) for name, trial in trials.items()}
    data = Scatter(np.asarray(dataset.train.x)[:, 0], np.asarray(dataset.train.y), x[:, 0] ** 3)
    hmc = trials["HMC"]
    caption = (
        "The same network, used in three ways. The dark band is doubt about the function. A single fit (MAP) has none "
        "and an ensemble of such fits little; the posterior (HMC) opens in the gap and beyond the data."
    )
    return (
        Picture("cubic-bands", "A noisy cubic with a gap", caption, plot_bands(panels, data)),
        Picture(
            "cubic-calibration",
            "HMC on the cubic: calibration, extrapolation included",
            "Flat on the left and on the diagonal on the right is calibrated; the test line reaches beyond the data.",
            plot_coverage(np.asarray(pit(hmc.predictive, dataset.test.y))),
        ),
        Picture(
            "cubic-trace",
            "HMC on the cubic: log density of each chain",
            "Chains that wander in one common band agree.",
            plot_trace(np.asarray(hmc.draws.log_density)),
        ),
    )
