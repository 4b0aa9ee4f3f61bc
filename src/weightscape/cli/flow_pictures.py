"""The pictures of a flow: its networks on their way, their weights, its training, its log weights, its evidence."""

from collections.abc import Mapping

import numpy as np

from weightscape.cli.flow_measure import Measured
from weightscape.core import PRNGKey
from weightscape.core.facts import Facts
from weightscape.data import Dataset
from weightscape.draws import Draws
from weightscape.inference import LogEvidence
from weightscape.report import (
    Picture,
    functions_on_the_way,
    plot_flow_training,
    plot_log_evidences,
    plot_log_weights,
    plot_path,
    plot_weights_beside,
    route_through,
)


def flow_pictures(
    key: PRNGKey, measured: Measured, named: Mapping[str, Draws], dataset: Dataset
) -> tuple[Picture, ...]:
    """Pictures of a flow.

    - `named`: draws whose weights are compared, by name: those of the chains first, then the flow's and others.
    """
    route = route_through(dataset)
    functions = functions_on_the_way(key, measured.flow, route)
    under_posterior = np.ravel(measured.under_posterior)
    log_weights = plot_log_weights(measured.under_flow, under_posterior, measured.gap, measured.evidence.value)
    return (
        Picture("flow-path", "From the prior to the posterior", _PATH, plot_path(route, functions)),
        Picture("flow-weights", "Weights of the chains and of the flow", _WEIGHTS, plot_weights_beside(named)),
        Picture("flow-training", "Training of the flow", _TRAINING, plot_flow_training(_with_gap(measured))),
        Picture("flow-log-weights", "Log weights of the flow", _LOG_WEIGHTS, log_weights),
    )


def _with_gap(measured: Measured) -> Facts:
    """The flow's facts, with J as it was measured at the end."""
    facts = measured.flow.facts
    last = {"step": facts["num_steps"], **measured.gap._asdict()}
    return facts.plus(gaps=[*(gap for gap in facts.get("gaps", ()) if gap["step"] < last["step"]), last])


def evidence_picture(named: Mapping[str, LogEvidence]) -> Picture:
    """The flow's evidence beside others."""
    return Picture("flow-evidence", "Evidence", _EVIDENCE, plot_log_evidences(named))


_PATH = (
    "Thirty networks as the flow carries them: at t = 0 they are drawn from the prior and know nothing of the data, at "
    "t = 1 they are draws of the posterior. The thick curve is their mean."
)
_WEIGHTS = "Pooled over the units of a layer. Where lines follow the filled histogram, the flow is right."
_TRAINING = (
    "A held-out loss that rises while the training loss falls means too few draws, or too long a training. "
    "J falls towards 0 as the flow nears the posterior; bars are two standard errors."
)
_LOG_WEIGHTS = (
    "For an exact flow all log weights are 0. J is the distance between the two solid lines; a long tail to the right "
    "under the chains is what the flow misses."
)
_EVIDENCE = (
    "Bars are two standard errors of the estimate. Laplace's value is that of one mode; all its equivalents under the "
    "network's symmetry add the logarithm of their number."
)
