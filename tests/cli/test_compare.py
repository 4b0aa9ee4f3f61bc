"""`weightscape compare` end to end: tables, distances, reuse, failures, interruptions."""

import json
import re

import jax
import numpy as np
import pytest
from tests.cli.test_cli_stopped import Impatient
from tests.cli.test_evidence import tiny_flow

import weightscape as ws
from weightscape.cli.main import run_command
from weightscape.evaluate import GaussianProcess, score_errors

SMALL = ["hmc.num_chains=2", "hmc.num_draws=20", "hmc.num_warmup=80", "hmc.num_leapfrog=4", "ensemble.num_members=3"]
SMALL += ["ensemble.num_steps=100", "gp.most_rows=60", "trees.num_rounds=10"]
SETTINGS = [word for text in SMALL for word in ("--set", text)]
METHODS = ["--methods", "ensemble,hmc", "--hidden", "3"]


def stamps(folder):
    """When each file below was written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def moons(tmp_path_factory):
    """A comparison on two inputs and two classes."""
    folder = tmp_path_factory.mktemp("compare") / "moons"
    assert run_command(["compare", "moons", *METHODS, *SETTINGS, "--out", str(folder), "--quiet"]) == 0
    return folder


@pytest.fixture(scope="module")
def result(moons):
    return json.loads((moons / "result.json").read_text())


def test_distances_and_scores_are_those_of_the_runs_on_disk(moons, result):
    data = ws.data.load("moons", seed=0)
    exact, quick = (ws.predict(ws.Draws.load(moons / name), data.test.x) for name in ("hmc", "ensemble"))
    found = result["methods"]
    assert list(found) == ["ensemble", "hmc", "gp", "trees"] and result["reference"]["name"] == "hmc"
    assert found["ensemble"]["nearness"] == {
        "agreement": ws.agreement(quick, exact),
        "total variation": ws.total_variation(quick, exact),
    }
    assert found["hmc"]["nearness"] == {}
    assert found["hmc"]["scores"] == pytest.approx(dict(ws.scores(exact, data.test.y)), rel=1e-6)
    process = GaussianProcess(most_rows=60).fit(data.train, 2, seed=0).predict(data.test.x)
    assert found["gp"]["scores"] == pytest.approx(dict(ws.scores(process, data.test.y)), rel=1e-4)
    assert found["gp"]["nearness"]["total variation"] == pytest.approx(ws.total_variation(process, exact), rel=1e-4)
    key = jax.random.fold_in(jax.random.key(0), 1_000_039)
    errors = score_errors(jax.random.split(key)[0], exact, data.test.y).errors
    assert found["hmc"]["standard_errors"] == pytest.approx(errors, rel=1e-6)


def test_costs_are_what_the_settings_and_the_draws_say(result):
    found, num_weights = result["methods"], 2 * 3 + 3 + 3 * 2 + 2
    assert found["hmc"]["num_gradients"] == 2 * 100 * 4 and found["ensemble"]["num_gradients"] == 300
    assert found["hmc"]["num_bytes"] == 4 * num_weights * 40 and found["ensemble"]["num_bytes"] == 4 * num_weights * 3
    assert all(one["seconds"] > 0 for one in found.values())
    assert found["gp"]["notes"][0] == "60 of 160 training rows"


def test_the_tables_and_the_page(moons):
    text, markdown, latex = ((moons / f"table.{ending}").read_text() for ending in ("txt", "md", "tex"))
    names = ["ensemble", "hmc", "gp", "trees"]
    assert [line.split()[0] for line in text.splitlines()[2:]] == names
    assert [line.split()[1] for line in markdown.splitlines()[2:]] == names
    assert len(re.findall(r"^(?:ensemble|hmc|gp|trees) +&.*\\\\$", latex, re.MULTILINE)) == 4
    assert " ± " in text and r"$\pm$" in latex
    page = (moons / "report.html").read_text()
    assert page.count("<figure>") == 3 and "Nearest to hmc is" in page
    for name in ("class-map", "calibration", "cost"):
        assert (moons / "figures" / f"{name}.png").exists()


def test_finished_runs_are_taken_as_they_are(moons, capsys):
    names = ("ensemble", "hmc", "gp", "trees")
    before = {path: stamp for name in names for path, stamp in stamps(moons / name).items()}
    table = (moons / "table.txt").read_text()
    assert run_command(["compare", "moons", *METHODS, *SETTINGS, "--out", str(moons)]) == 0
    assert {path: stamp for name in names for path, stamp in stamps(moons / name).items()} == before
    assert (moons / "table.txt").read_text() == table
    assert capsys.readouterr().out.count("from the earlier run") == 4


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--set", "hmc.step_size=0.01"], "hmc` must have step_size 0.01"),
        (["--set", "gp.most_rows=50"], "gp` must have most_rows 50, got 60"),
        (["--seed", "1"], "ensemble` must have seed 1, got 0"),
        (["--hidden", "4"], "ensemble` must have model.network.hidden 4, got 3"),
        (["--set", "hmc.num_draws=30"], "hmc` must have num_draws 30, got 20"),
    ],
)
def test_changed_settings_are_refused_before_anything_runs(moons, capsys, more, message):
    before = stamps(moons)
    assert run_command(["compare", "moons", *METHODS, *SETTINGS, *more, "--out", str(moons)]) == 2
    complaint = capsys.readouterr().err
    assert message in complaint and "pass `--overwrite`, or choose another `--out`" in complaint
    assert len(complaint.splitlines()) == 1 and stamps(moons) == before


def test_a_method_that_fails_does_not_lose_the_others(tmp_path, capsys):
    options = ["--baselines", "none", "--methods", "sghmc,map", "--set", "map.num_steps=20", "--hidden", "2"]
    command = ["compare", "moons", *options, "--set", "sghmc.batch_size=1000", "--out", str(tmp_path)]
    assert run_command(command) == 1
    assert "sghmc failed after" in capsys.readouterr().out
    found = json.loads((tmp_path / "result.json").read_text())["methods"]
    assert found["sghmc"]["failed"] and not found["map"]["failed"] and found["map"]["scores"]["nll"] > 0
    assert "`batch_size` of SGHMC must be at most the number of points, 160" in found["sghmc"]["notes"][0]
    rows = {line.split()[0]: line for line in (tmp_path / "table.txt").read_text().splitlines()}
    assert (
        "failed: `batch_size` of SGHMC must be at most" in rows["sghmc"]
        and not (tmp_path / "sghmc" / "run.json").exists()
    )
    # Nothing stands in the way of trying again, with another setting.
    assert run_command([*command[:-2], "--set", "sghmc.num_draws=0", "--out", str(tmp_path)]) == 2


class Hurried(Impatient):
    """Interrupts sampling in whichever contender comes to it."""

    def start(self, label, total):
        super().start(label.rpartition(": ")[2], total)


@pytest.mark.slow
def test_an_interruption_keeps_what_is_there(tmp_path, capsys, monkeypatch):
    options = ["--baselines", "none", "--methods", "map,hmc", "--set", "map.num_steps=20", "--hidden", "2"]
    options += ["--set", "hmc.num_chains=2", "--set", "hmc.num_draws=400"]
    command = ["compare", "noisy_line", *options, "--out", str(tmp_path), "--quiet"]
    with monkeypatch.context() as patch:
        patch.setattr("weightscape.cli.screen.Silent", Hurried)
        assert run_command(command) == 130
    assert capsys.readouterr().err.splitlines() == [
        f"weightscape: Stopped during hmc. Finished runs and the draws so far are kept in `{tmp_path}`; repeat the "
        "command with `--resume` to go on."
    ]
    before = stamps(tmp_path / "map")
    assert run_command(command) == 2
    assert "`--resume` to go on with it" in capsys.readouterr().err
    assert run_command([*command, "--resume"]) == 0
    assert stamps(tmp_path / "map") == before and ws.Draws.load(tmp_path / "hmc").num_draws == 400
    found = json.loads((tmp_path / "result.json").read_text())["methods"]
    assert set(found["map"]["nearness"]) == {"W1", "W2"}
    assert (tmp_path / "figures" / "predictive.png").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--methods", "hmc", "--reference", "map"], "`--reference` must be a known name, got 'map'. Known: gp, hmc"),
        (["--methods", "hcm"], "Did you mean 'hmc'?"),
        (["--methods", ""], "`--methods` must name at least one method"),
        (["--methods", "map,map"], "`--methods` must name each once, got map twice"),
        (["--baselines", "tree"], "Did you mean 'trees'?"),
        (["--set", "swag.rank=3"], "The method of `--set METHOD.NAME=VALUE` must be a known name, got 'swag'"),
        (["--set", "gp.rows=3"], "A setting of GaussianProcess must be a known name, got 'rows'"),
        (["--resume", "--overwrite"], "`--overwrite` and `--resume` must not both be given"),
    ],
)
def test_mistakes_are_one_line(tmp_path, capsys, options, message):
    assert run_command(["compare", "noisy_line", *options, "--out", str(tmp_path / "out")]) == 2
    complaint = capsys.readouterr().err
    assert message in complaint and len(complaint.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_flow_takes_part(tmp_path, monkeypatch):
    monkeypatch.setattr("weightscape.cli.choose.small_flow", tiny_flow)
    settings = ["sampler.num_draws=40", "sampler.num_warmup=40", "sampler.num_leapfrog=4", "flow.num_steps=50"]
    words = [word for text in settings for word in ("--set", f"flow.{text}")]
    words += ["--set", "hmc.num_draws=40", "--set", "hmc.num_warmup=40"]
    options = ["--methods", "flow,hmc", "--baselines", "none", "--hidden", "2", "--out", str(tmp_path)]
    assert run_command(["compare", "noisy_line", *options, *words, "--quiet"]) == 0
    found = json.loads((tmp_path / "result.json").read_text())["methods"]
    assert np.isfinite(found["flow"]["nearness"]["W1"]) and found["flow"]["num_gradients"] is None
    before = stamps(tmp_path / "flow")
    assert run_command(["compare", "noisy_line", *options, *words, "--quiet"]) == 0
    assert stamps(tmp_path / "flow") == before
