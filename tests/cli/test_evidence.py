"""`weightscape evidence` with a flow, which has no value of its own; settings reach the flow and its sampler."""

import json

import diffrax
import numpy as np
import pytest

import weightscape as ws
from weightscape.cli.choose import MethodOptions, ModelOptions, choose_method, choose_model
from weightscape.cli.conduct import ConductOptions, choose_conduct
from weightscape.cli.evidence import methods_by_name
from weightscape.cli.main import run_command
from weightscape.core import InputError
from weightscape.metanet import Sizes


def tiny_flow():
    """In place of a metanet, whose compilation would take most of the time."""
    return ws.FlowMatching(
        num_steps=200,
        batch_size=32,
        learning_rate=3e-3,
        architecture=ws.flow.Plain(Sizes(width=16, num_blocks=1, num_heads=1)),
        prediction=ws.flow.OfVelocity(),
        solver=ws.flow.FixedSteps(6, diffrax.Heun(), num_nodes=4),
        gap_every=0,
    )


@pytest.fixture(scope="module")
def posterior():
    dataset = ws.data.load("noisy_line")
    return choose_model(dataset, ModelOptions("2")).condition(dataset.train)


def test_chains_and_settings_reach_a_flow_and_its_sampler(posterior):
    settings = ("sampler.num_draws=7", "sampler.step_size=0.01", "flow.num_steps=11", "flow.held_out=0.2")
    method = choose_method(posterior, MethodOptions("flow", 3, 50, None, settings)).method
    assert isinstance(method.sampler, ws.HMC)
    assert (method.sampler.num_chains, method.sampler.num_draws, method.flow.num_steps) == (3, 7, 11)
    assert float(method.sampler.step_size) == pytest.approx(0.01) and method.flow.held_out == 0.2
    # The rest is as it was, and an ensemble to start from has a member for each chain.
    assert method.flow.batch_size == ws.flow.FlowAfter().flow.batch_size
    assert choose_conduct(ConductOptions(start="ensemble"), method).init.num_members == 3


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("num_steps=3", "Known: flow, sampler"),
        ("flow.num_step=3", "Did you mean 'num_steps'?"),
        ("sampler.num_draw=3", "Did you mean 'num_draws'?"),
        ("flow.num_steps=many", "must have a number, true, false or null, got 'many'"),
    ],
)
def test_settings_of_no_part_are_refused(posterior, setting, message):
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        choose_method(posterior, MethodOptions("flow", settings=(setting,)))


def test_a_setting_wins_over_an_option(posterior):
    assert choose_method(posterior, MethodOptions("hmc", 3, settings=("num_chains=5",))).method.num_chains == 5


def test_a_flow_whose_evidence_counts_learns_from_a_ladder(posterior):
    found = methods_by_name("laplace, flow", ("flow.sampler.num_replicas=5", "laplace.structure=diagonal"), posterior)
    assert list(found) == ["laplace", "flow"]
    sampler = found["flow"].sampler
    assert isinstance(sampler, ws.ParallelTempering) and sampler.num_replicas == 5 and sampler.num_chains == 16
    assert type(found["laplace"].structure) is type(ws.Laplace("diagonal").structure)
    with pytest.raises(InputError, match="Known: laplace"):
        methods_by_name("laplace", ("flow.sampler.num_replicas=5",), posterior)


@pytest.mark.slow
def test_flow_and_ladder_are_compared_end_to_end(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("weightscape.cli.choose.small_flow", tiny_flow)
    settings = ["num_draws=40", "num_warmup=60", "num_replicas=4", "num_leapfrog=4"]
    given = [f"{part}.{each}" for part in ("flow.sampler", "paralleltempering") for each in settings]
    command = ["evidence", "noisy_line", "--widths", "1", "--noise", "1", "--methods", "flow,paralleltempering"]
    options = [word for each in given for word in ("--set", each)]
    assert run_command([*command, *options, "--draws", "200", "--progress", "json", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    phases = {json.loads(line)["phase"] for line in shown.err.splitlines()}
    assert "1 of 2, 1 units, flow: training the flow" in phases
    assert "2 of 2, 1 units, paralleltempering: sampling" in phases
    flow, ladder = json.loads((tmp_path / "result.json").read_text())["rows"]
    assert flow["own"] is None and ladder["weighed"] is None and ladder["is_trusted"]
    weighed = flow["weighed"]
    tail = -np.inf if weighed["pareto_k"] is None else weighed["pareto_k"]
    assert flow["is_trusted"] == (tail < 0.7 and weighed["effective_sample_size"] >= 50)
    page = (tmp_path / "report.html").read_text()
    assert "paralleltempering prefers 1 units" in page
    said = "flow, by its weights, prefers 1 units" if flow["is_trusted"] else "flow has no value that can be trusted"
    assert said in page and (tmp_path / "figures" / "evidence.png").exists()
