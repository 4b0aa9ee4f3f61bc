"""The demo's third chapter: a flow that learns from HMC's draws to draw networks for the irises, with their density."""

import time
from typing import Any

import jax

from weightscape.cli.chapter import Chapter, Trial
from weightscape.cli.flow_measure import Measured, as_json, halves, measure_flow, nearness
from weightscape.cli.flow_page import measure_table
from weightscape.cli.flow_pictures import flow_pictures
from weightscape.cli.screen import Screen
from weightscape.core import PRNGKey
from weightscape.data import Dataset
from weightscape.flow import Flow, FlowMatching, small_flow
from weightscape.posterior import Model
from weightscape.predictive import predict
from weightscape.report import Table
from weightscape.report.numbers import duration, percent, shown

_NUM_DRAWS = 1024


def flow_method() -> FlowMatching:
    """A flow that two cores train in a minute."""
    return small_flow(num_steps=2500)


def tell_flow(key: PRNGKey, hmc: Trial, dataset: Dataset, screen: Screen) -> Chapter:
    """A flow trained on the draws of HMC, and how near it comes to them."""
    began = time.monotonic()
    key_train, key_measure, key_picture = jax.random.split(key, 3)
    model = hmc.draws.model
    posterior = Model(model.network, model.likelihood, model.prior).condition(dataset.train)
    flow = flow_method().run(key_train, posterior, draws=hmc.draws, progress=screen.progress())
    assert isinstance(flow, Flow)
    measured = measure_flow(key_measure, flow, hmc.draws, _NUM_DRAWS)
    found = nearness(predict(measured.draws, dataset.test.x), hmc.predictive)
    seconds = time.monotonic() - began
    screen.say(f"  flow on {dataset.name}: {duration(seconds)}")
    pictures = flow_pictures(key_picture, measured, {"HMC": hmc.draws, "flow": measured.draws}, dataset)
    result = {**as_json(measured), **found, "seconds": seconds}
    return Chapter(_finding(measured, found), _table(measured, found, halves(hmc.draws, dataset)), pictures, result)


def _table(measured: Measured, found: dict[str, float], between: dict[str, float]) -> Table:
    table = measure_table("Irises: a flow trained on HMC's draws", measured)
    near = tuple((f"{name} with HMC", shown(value)) for name, value in found.items())
    noise = ("total variation of two halves of HMC", shown(between["total variation"]))
    return table._replace(rows=(*table.rows, *near, noise))


def _finding(measured: Measured, found: dict[str, Any]) -> str:
    evidence = measured.evidence
    told = f"A flow learned from HMC to draw such networks in {1e3 * measured.seconds_a_network:.1g} ms each: its "
    told += f"probabilities are {shown(found['total variation'])} away from HMC's"
    counted = f"{percent(evidence.efficiency)} of its draws count"
    if not evidence.is_trusted:
        return f"{told}, and {counted} when weighed by the posterior, too few for an evidence."
    error = f"{evidence.standard_error:.2g}"
    return f"{told}; {counted} when weighed by the posterior, so that log p(D) = {evidence.value:.1f} ± {error}."
