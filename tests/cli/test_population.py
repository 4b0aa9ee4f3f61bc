"""`weightscape population`, and `weightscape flow` on what it writes: networks drawn, judged and kept."""

import json

import numpy as np
import pytest
from tests.cli.test_flow import prior_draws, save_run

import weightscape as ws
from weightscape.cli.flow_population import GEOMETRIES, population_method
from weightscape.cli.main import run_command
from weightscape.core import InputError
from weightscape.evaluate import function_features, memorisation
from weightscape.flow import Equivariant, FixedSteps, small_sizes


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("population") / "run"
    options = ["--hidden", "3", "--runs", "20", "--iterates", "2", "--every", "3", "--steps", "60"]
    assert run_command(["population", "iris", *options, "--out", str(folder), "--quiet"]) == 0
    return folder


@pytest.mark.slow
def test_a_population_is_a_run_whose_chains_are_training_runs(run):
    draws = ws.Draws.load(run)
    assert (draws.num_chains, draws.num_draws, draws.facts["method"]) == (20, 2, "Population")
    assert draws.model.network.hidden == (3,) and draws.model.network.activation(-1.0) == 0.0
    settings = draws.facts["settings"]["fields"]
    assert (settings["num_steps"], settings["every"]) == (60, 3)
    result = json.loads((run / "result.json").read_text())
    assert result["scores"]["accuracy"] > 0.5 and (run / "report.html").exists()


@pytest.mark.slow
def test_a_flow_learns_from_it_and_is_judged_by_other_runs(run, tmp_path, capsys):
    options = ["--steps", "20", "--width", "8", "--draws", "12", "--out", str(tmp_path)]
    assert run_command(["flow", str(run), *options, "--geometry", "normalized-with-shifts"]) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    networks, population = ws.Draws.load(tmp_path / "networks"), ws.Draws.load(run)
    assert len(networks) == result["num_networks"] == 12
    x = np.asarray(ws.data.load("iris").test.x)
    train, held_out = ws.split_runs(population, 0.2)
    parts = (networks, train, held_out[:, -1:])
    audit = memorisation(*(function_features(part, x) for part in parts))
    np.testing.assert_allclose(result["memorisation"]["functions"]["ratio"], audit.ratio, rtol=1e-4)
    np.testing.assert_allclose(result["memorisation"]["functions"]["z_u"], audit.z_u, atol=1e-6)
    assert set(result["scores"]) == {"training", "held out", "flow"}
    assert "times as far from the training networks" in capsys.readouterr().out.replace("\n", " ")
    assert (tmp_path / "report.html").exists()


@pytest.mark.slow
def test_a_flow_by_loss_tells_what_was_asked_for_and_what_came(run, tmp_path, capsys):
    options = ["--steps", "20", "--width", "8", "--draws", "12", "--out", str(tmp_path)]
    assert run_command(["flow", str(run), *options, "--given", "loss", "--revisions", "0"]) == 0
    result, population = json.loads((tmp_path / "result.json").read_text()), ws.Draws.load(run)
    posterior = population.model.condition(ws.data.load("iris").train)
    losses = ws.flow.mean_losses(posterior, ws.split_runs(population, 0.2).train)
    expected = np.quantile(losses, [0.1, 0.5, 0.9])
    asked = [result["given"][name]["asked"] for name in ("low", "middle", "high")]
    np.testing.assert_allclose(asked, expected, rtol=1e-4)
    assert all(np.isfinite(answer["mean"]) and answer["deviation"] > 0 for answer in result["given"].values())
    assert "losses on the training rows" in capsys.readouterr().out


def test_options_that_are_left_out_are_those_that_help_tells(tmp_path, monkeypatch, capsys):
    asked = []

    def refusing(geometry, steps, sizes, given, revisions, forgetting):
        asked.append((geometry, revisions))
        raise InputError("Not now, got this. Leave it out.")

    monkeypatch.setattr("weightscape.cli.flow.population_method", refusing)
    dataset, draws = prior_draws("noisy_line", (4, 3), noise="10", method="Population")
    run = str(save_run(tmp_path / "run", draws, dataset))
    assert run_command(["flow", run]) == run_command(["flow", run, "--geometry", "", "--revisions", "0"]) == 2
    assert asked == [("euclidean", 3), ("", 0)]
    assert run_command(["flow", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "(euclidean)" in shown and "(3)" in shown


def test_geometries_have_their_names_and_shifts_on_spheres_by_theirs():
    named = {name: population_method(name, 10, small_sizes(8, 1), None, 0).geometry for name in GEOMETRIES}
    for name, geometry in named.items():
        kind, _, option = name.partition("-")
        assert (type(geometry).__name__.lower(), getattr(geometry, "with_shifts", False)) == (kind, bool(option))
    assert {"geometric-with-shifts", "normalized-with-shifts"} < set(named)


def test_fields_look_at_the_data_as_often_as_they_are_told_to():
    of = lambda count: population_method("euclidean", 10, small_sizes(8, 1), None, count).architecture
    assert isinstance(of(0), Equivariant) and not of(0).looks_at_data
    assert [of(count).num_revisions for count in (1, 3)] == [1, 3] and of(1).looks_at_data


def test_draws_forget_where_that_is_possible_and_nothing_else_was_asked():
    of = lambda geometry, asked: population_method(geometry, 10, small_sizes(8, 1), None, 0, asked).solver
    assert float(of("euclidean", None).forgetting) == 10 and float(of("euclidean", 2.0).forgetting) == 2
    assert all(isinstance(of(*asked), FixedSteps) for asked in (("euclidean", 0.0), ("geometric", None)))


def test_mistakes_are_one_line(tmp_path, capsys):
    dataset, draws = prior_draws("noisy_line", (4, 3), noise="10", method="Population")
    run = save_run(tmp_path / "run", draws, dataset)
    assert run_command(["flow", str(run), "--out", str(tmp_path / "flow"), "--geometry", "round"]) == 2
    assert "`--geometry` must be a known name, got 'round'" in capsys.readouterr().err
    on_spheres = ["--geometry", "geometric", "--forgetting", "3"]
    assert run_command(["flow", str(run), "--out", str(tmp_path / "flow"), *on_spheres]) == 2
    assert "`--forgetting` must be 0 where `--geometry` is geometric, got 3.0" in capsys.readouterr().err
    assert run_command(["flow", str(run), "--out", str(tmp_path / "flow"), "--forgetting", "-1"]) == 2
    assert "`forgetting` of ForgetfulSteps must be finite and at least 0, got -1" in capsys.readouterr().err
    assert run_command(["flow", str(run), "--out", str(tmp_path / "flow"), "--given", "los"]) == 2
    assert "`--given` must be a known name, got 'los'. Did you mean 'loss'" in capsys.readouterr().err
    assert run_command(["flow", str(run), "--out", str(tmp_path / "flow"), "--correct", "hmc"]) == 2
    assert "a population must have none, got hmc" in capsys.readouterr().err
    assert run_command(["population", "iris", "--runs", "1", "--out", str(tmp_path / "one")]) == 2
