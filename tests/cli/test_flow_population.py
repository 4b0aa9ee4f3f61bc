"""`weightscape flow` on a population: where its rows come from, what is left of it, and networks that overflow."""

import dataclasses
import json

import diffrax
import jax
import numpy as np
import pytest
from tests.cli.test_flow import prior_draws, save_run

import weightscape as ws
from weightscape.cli.choose import ModelOptions, choose_model
from weightscape.cli.flow_folder import begin_flow
from weightscape.cli.flow_judged import Judged, audits_of, finding, finite_networks, one_of_each_run
from weightscape.cli.main import run_command
from weightscape.cli.opened_run import open_run, with_training_rows
from weightscape.cli.result_folder import write_result
from weightscape.cli.run_folder import Run, write_run
from weightscape.data import TrainingRange
from weightscape.evaluate import Memorisation, function_features, memorisation
from weightscape.flow import ByLoss, PopulationFlow, mean_losses
from weightscape.metanet import Sizes
from weightscape.report import Report

NUM_DRAWS = 10


class Looking(ws.flow.Plain):
    """Says that it looks at the data, and is quick."""

    @property
    def looks_at_data(self):
        return True


def quick_method(geometry, num_steps, sizes, given, num_revisions, forgetting=None):
    """In place of a metanet, whose compilation would take most of the time."""
    plain = Looking if num_revisions else ws.flow.Plain
    return ws.PopulationMatching(
        ws.flow.Euclidean(),
        num_steps=num_steps,
        batch_size=16,
        average=0.9,
        architecture=plain(Sizes(width=8, num_blocks=1, num_heads=1)),
        solver=ws.flow.FixedSteps(2, diffrax.Heun()),
        conditions=None if given is None else ByLoss(),
    )


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("weightscape.cli.flow.population_method", quick_method)


def judge(run, out, *options):
    """Run the command on a population."""
    common = ["--steps", "5", "--width", "8", "--draws", str(NUM_DRAWS), "--out", str(out)]
    return run_command(["flow", str(run), *common, *options])


def result_of(folder):
    return json.loads((folder / "result.json").read_text())


def trained_run(folder, source="iris", dataset=None):
    """A population in a run folder, whose training rows are left out as if they were too many to keep."""
    dataset = ws.data.load(source) if dataset is None else dataset
    posterior = choose_model(dataset, ModelOptions("2")).condition(dataset.train)
    span = TrainingRange.fit(dataset.train.x, dataset.inputs)
    about = (dataset.task, dataset.target, dataset.inputs, dataset.classes, dataset.schema)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("weightscape.cli.run_folder._MOST_BYTES", 4 * np.size(dataset.train.x))
        write_run(folder, Run(dataset.name, source, *about, span, 0, {}), dataset)
    ws.Population(num_runs=20, num_steps=3).run(jax.random.key(0), posterior, store=folder)
    assert not open_run(folder).has_training_rows
    return folder


@pytest.fixture(scope="module")
def population(tmp_path_factory):
    """Twenty runs of two iterates each, with all their rows."""
    dataset, draws = prior_draws("iris", (20, 2), method="Population")
    return save_run(tmp_path_factory.mktemp("population") / "run", draws, dataset)


@pytest.fixture(scope="module")
def without_rows(tmp_path_factory):
    return trained_run(tmp_path_factory.mktemp("without") / "run")


def test_training_rows_that_were_too_many_to_keep_are_read_again(without_rows):
    found, known = with_training_rows(open_run(without_rows), "Do something."), ws.data.load("iris")
    assert found.has_training_rows
    for part in ("train", "test"):
        np.testing.assert_array_equal(getattr(found.dataset, part).x, getattr(known, part).x)
        np.testing.assert_array_equal(getattr(found.dataset, part).y, getattr(known, part).y)


@pytest.mark.slow
def test_a_flow_by_loss_is_told_those_of_training_rows(without_rows, tmp_path, capsys):
    assert judge(without_rows, tmp_path / "flow", "--given", "loss", "--revisions", "0") == 0
    draws = ws.Draws.load(without_rows)
    losses = mean_losses(draws.model.condition(ws.data.load("iris").train), ws.split_runs(draws, 0.2).train)
    asked = [result_of(tmp_path / "flow")["given"][name]["asked"] for name in ("low", "middle", "high")]
    np.testing.assert_allclose(asked, np.quantile(losses, [0.1, 0.5, 0.9]), rtol=1e-5)
    assert "Reading the training rows again from iris." in capsys.readouterr().out


@pytest.mark.parametrize("options", [(), ("--revisions", "0", "--given", "loss")])
def test_flows_never_learn_from_the_rows_that_test_them(tmp_path, capsys, options):
    other = dataclasses.replace(ws.data.load("iris", seed=1), name="iris")
    run = trained_run(tmp_path / "run", "iris", other)  # the catalogue would split it in another way
    assert judge(run, tmp_path / "flow", *options) == 2
    error = capsys.readouterr().err
    assert "must hold its training rows, or know where they are, got none, and `iris` gives other rows" in error
    assert "Pass `--revisions 0` without `--given`, which needs no data" in error and error.count("\n") == 1
    assert not (tmp_path / "flow").exists()


def test_rows_that_are_gone_are_one_line(tmp_path, capsys):
    run = trained_run(tmp_path / "run", "gone.csv", ws.data.load("iris"))
    assert judge(run, tmp_path / "flow") == 2
    error = capsys.readouterr().err
    assert "must hold its training rows, or know where they are, got none (" in error and "gone.csv" in error
    assert error.count("\n") == 1


@pytest.mark.slow
def test_fields_that_see_no_data_need_no_training_rows(tmp_path):
    run = trained_run(tmp_path / "run", "gone.csv", ws.data.load("iris"))
    assert judge(run, tmp_path / "flow", "--revisions", "0") == 0
    assert (tmp_path / "flow" / "result.json").exists()


def overflowing(monkeypatch, sizes):
    """Let flows draw networks of which the first ones have weights of these sizes."""
    true_sample = PopulationFlow.sample

    def sample(flow, key, num_draws):
        draws = true_sample(flow, key, num_draws)

        def grown(leaf):
            several = np.array(leaf)
            for i, size in enumerate(sizes):
                several[0, i] = size
            return several

        network = jax.tree.map(grown, draws.params.network)
        return dataclasses.replace(draws, params=draws.params._replace(network=network))

    monkeypatch.setattr(PopulationFlow, "sample", sample)


def test_networks_that_overflow_are_counted_and_the_others_judged_by_one_of_each_run(
    population, tmp_path, monkeypatch, capsys
):
    overflowing(monkeypatch, (np.inf, 1e20, np.nan))  # equal weights of 1e20 give equal outputs, and a loss
    assert judge(population, tmp_path, "--given", "loss", "--revisions", "0") == 0
    result, networks = result_of(tmp_path), ws.Draws.load(tmp_path / "networks")
    assert (len(networks), result["num_networks"], result["num_not_finite"]) == (NUM_DRAWS, NUM_DRAWS, 3)
    assert all(np.isfinite(value) for value in result["scores"]["flow"].values())
    assert all(np.isfinite(answer["mean"]) and answer["num_not_finite"] == 2 for answer in result["given"].values())
    told = " ".join(capsys.readouterr().out.split())
    assert "Left out of all numbers, as not finite: 3 of 10 drawn networks." in told
    opened = open_run(population)
    (train, held_out), x = ws.split_runs(opened.draws, 0.2), np.asarray(opened.dataset.test.x)
    expected = audits_of(networks[:, 3:], train, held_out[:, -1:], x)
    for name, audit in result["memorisation"].items():
        np.testing.assert_allclose([*audit.values()], expected[name], rtol=1e-4, atol=1e-6)


def test_networks_whose_weights_or_functions_overflow_are_not_finite():
    dataset, draws = prior_draws("iris", (1, 5))
    # Outputs of 1e30 leave classes certain, and weights whose squares are none.
    sizes = np.asarray([np.inf, 1.0, 1e20, np.nan, 1.0], np.float32)
    grown = jax.tree.map(lambda leaf: leaf * sizes.reshape(1, 5, *[1] * (leaf.ndim - 2)), draws.params.network)
    draws = dataclasses.replace(draws, params=draws.params._replace(network=grown))
    kept = finite_networks(draws, np.asarray(dataset.test.x))
    np.testing.assert_array_equal(kept, [False, True, False, False, True])


def leftovers(folder):
    """What commands on an earlier flow have left in a folder."""
    paths = [folder / name for name in ("result.json", "report.html", "figures/a.png", "corrected/draws.json")]
    for path in (*paths, folder / "networks" / "draws.json"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("old")
    return paths


def test_networks_that_cannot_be_judged_are_kept_and_nothing_of_a_former_flow_beside_them(
    population, tmp_path, monkeypatch, capsys
):
    paths = leftovers(tmp_path)
    overflowing(monkeypatch, [np.inf] * NUM_DRAWS)
    assert judge(population, tmp_path, "--revisions", "0") == 2
    error = capsys.readouterr().err
    assert "must draw networks that are finite, got none of 10. Train it for longer." in error
    assert len(ws.Draws.load(tmp_path / "networks")) == NUM_DRAWS and not any(path.exists() for path in paths)
    # A training that is refused changes nothing.
    paths = leftovers(tmp_path)
    assert judge(population, tmp_path, "--revisions", "0", "--seed", "1", "--resume") == 2
    assert "A run continued in" in capsys.readouterr().err and all(path.exists() for path in paths)


def test_only_what_commands_have_left_is_removed(tmp_path):
    paths = leftovers(tmp_path)
    assert begin_flow(tmp_path, resume=True) == tmp_path / "flow" and all(path.exists() for path in paths)
    begin_flow(tmp_path, resume=False)
    assert not any(path.exists() for path in paths)
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "mine.png").write_text("mine")
    begin_flow(tmp_path, resume=False)
    assert (tmp_path / "figures" / "mine.png").exists()  # no page has shown it


def test_numbers_that_are_not_finite_are_null(tmp_path):
    found = {"some": {"nan": float("nan"), "inside": (np.inf, 1.5, [-np.inf])}, "count": 3, "name": "inf"}
    write_result(tmp_path, "flow", found, Report("title", "summary", (), ()))
    result = result_of(tmp_path)
    assert result["some"] == {"nan": None, "inside": [None, 1.5, [None]]}
    assert (result["count"], result["name"]) == (3, "inf")


def test_z_u_of_an_exact_generator_is_standard_normal_where_runs_have_several_iterates():
    """Prior draws as networks: 120 generated, 16 runs of training, 8 held out; iterates of a run hardly differ."""
    dataset, draws = prior_draws("iris", (30 * 144, 1))
    noise, x = np.random.default_rng(0), np.asarray(dataset.test.x[::6])

    def iterates(leaf):
        several = np.repeat(np.asarray(leaf), 8, axis=1)
        return (several * (1 + 1e-3 * noise.standard_normal(several.shape))).astype(several.dtype)

    runs, found = draws.map_leaves(iterates), []
    for first in range(0, 30 * 144, 144):
        generated, train = runs[first : first + 120, :1], runs[first + 120 : first + 136]
        held_out = one_of_each_run(runs[first + 136 : first + 144])
        found.append(memorisation(*(function_features(part, x) for part in (generated, train, held_out))).z_u)
    # The standard deviation of 30 standard normal numbers is 1 ± 0.13, their mean 0 ± 0.18. With all 64 networks the
    # former would be √(8 (120 + 8 + 1) / (120 + 64 + 1)) = 2.4 ± 0.3.
    assert 0.6 < np.std(found) < 1.4 and abs(np.mean(found)) < 0.6


def test_a_few_runs_keep_all_their_iterates_and_it_is_said(population):
    draws = open_run(population).draws
    assert one_of_each_run(draws[:4]).num_draws == 1
    few, audit = one_of_each_run(draws[:3]), Memorisation(1.0, 1.0, 1.0, -5.0)
    shown = {name: {"accuracy": 0.5} for name in ("training", "held out", "flow")}
    judged = Judged(None, draws, 0, few, shown, {"functions": audit}, {})
    told = finding(judged, "iris")
    assert told.endswith("Z_U takes 2 iterates of each of 3 held-out runs for independent networks, and says too much; "
                         "train more runs.")  # fmt: skip
    assert finding(judged._replace(audited=draws[:4, -1:]), "iris").endswith("(Z_U = -5.0).")
