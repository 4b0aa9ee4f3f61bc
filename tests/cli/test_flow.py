"""`weightscape flow`: a flow on a run's draws, measured, corrected and kept; mistakes are one line."""

import dataclasses
import json

import diffrax
import jax
import numpy as np
import pytest

import weightscape as ws
from weightscape.cli.chapter import Trial
from weightscape.cli.choose import MethodOptions, ModelOptions, choose_method, choose_model
from weightscape.cli.demo_flow import tell_flow
from weightscape.cli.flow_measure import halves, held_out_draws, nearness
from weightscape.cli.main import run_command
from weightscape.cli.opened_run import open_run
from weightscape.cli.run_folder import Run, write_run
from weightscape.cli.screen import Screen
from weightscape.core.facts import Facts
from weightscape.data import TrainingRange
from weightscape.flow.after import FlowAfter
from weightscape.flow.source import WhitenedSource
from weightscape.flow.training_set import training_set
from weightscape.metanet import Sizes
from weightscape.predictive import predict

NUM_DRAWS = 60


def tiny_flow(num_steps, width, num_blocks):
    """In place of a metanet, whose compilation would take most of the time."""
    return ws.FlowMatching(
        num_steps=num_steps,
        batch_size=16,
        learning_rate=3e-3,
        architecture=ws.flow.Plain(Sizes(width=width, num_blocks=num_blocks, num_heads=1)),
        solver=ws.flow.FixedSteps(2, diffrax.Heun()),
        gap_every=0,
    )


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("weightscape.cli.flow.small_flow", tiny_flow)


def save_run(folder, draws, dataset):
    span = TrainingRange.fit(dataset.train.x, dataset.inputs)
    about = (dataset.name, dataset.name, dataset.task, dataset.target, dataset.inputs, dataset.classes, dataset.schema)
    write_run(folder, Run(*about, span, 0, {"method": "by hand"}), dataset)
    draws.save(folder)
    return folder


def prior_draws(name, shape, noise=None, **facts):
    """Draws from the prior with their log p(D, θ), as if chains had made them."""
    dataset = ws.data.load(name)
    posterior = choose_model(dataset, ModelOptions("2", noise=noise)).condition(dataset.train)
    keys = jax.random.split(jax.random.key(3), shape)
    positions = jax.vmap(jax.vmap(lambda key: posterior.model.sample_position(key, posterior.x)))(keys)
    each = lambda function: jax.tree.map(np.asarray, jax.jit(jax.vmap(jax.vmap(function)))(positions))
    parts = (each(posterior.constrain), each(posterior.log_density))
    draws = ws.Draws(*parts, posterior.model, posterior.scaling, posterior.example, facts=Facts(**facts))
    return dataset, draws


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Four chains of twelve draws on one number, with so much noise that the prior is near the posterior."""
    dataset, draws = prior_draws("noisy_line", (4, 12), noise="10", method="HMC")
    return save_run(tmp_path_factory.mktemp("flow") / "run", draws, dataset)


@pytest.fixture(scope="module")
def made(run, tmp_path_factory):
    """The folder of a flow on it, corrected by moves."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("weightscape.cli.flow.small_flow", tiny_flow)
        options = ["--steps", "40", "--width", "8", "--blocks", "1", "--draws", str(NUM_DRAWS), "--correct", "hmc"]
        assert run_command(["flow", str(run), *options, "--out", str(folder), "--quiet"]) == 0
    return folder


def result_of(folder):
    return json.loads((folder / "result.json").read_text())


@pytest.mark.slow
def test_the_numbers_are_those_of_the_flow_that_is_kept(run, made):
    opened, result = open_run(run), result_of(made)
    posterior = opened.posterior()
    flow = ws.Flow.load(made / "flow", posterior)
    key_landing, key_draws, _ = jax.random.split(jax.random.split(jax.random.key(0), 5)[1], 3)
    landing = ws.flow.Landing(time=0.5)
    diffusion = ws.flow.tuned_landing(key_landing, ws.flow.Diffusion(flow, 64, landing=landing))
    draws = diffusion.sample(key_draws, NUM_DRAWS)
    ours = np.ravel(draws.log_density).astype(np.float64) - np.ravel(draws.log_proposal)
    log_q, theirs = jax.jit(lambda position, key: diffusion.log_density(position, key)), []
    for i, key in enumerate(jax.random.split(jax.random.key(0), 12)):
        position = jax.tree.map(lambda leaf, i=i: leaf[3, i], opened.draws.positions())
        theirs.append(float(posterior.log_density(position)) - float(log_q(position, key)))
    # Rounding of single precision in log densities of some thousands, of which the mean is taken.
    np.testing.assert_allclose(result["gap"]["value"], np.mean(theirs) - ours.mean(), rtol=1e-4)
    shares = np.exp(ours - ours.max()) / np.sum(np.exp(ours - ours.max()))
    np.testing.assert_allclose(result["evidence"]["effective_sample_size"], 1 / np.sum(shares**2), rtol=1e-3)
    evidence = ours.max() + np.log(np.mean(np.exp(ours - ours.max())))
    np.testing.assert_allclose(result["evidence"]["value"], evidence, rtol=1e-4)
    assert result["training"]["num_train"] == 36 and result["training"]["num_held_out"] == 12
    reference = predict(opened.draws, opened.dataset.test.x)
    found = nearness(predict(draws, opened.dataset.test.x), reference)
    assert result["compared"]["flow"] == pytest.approx({**result["compared"]["flow"], **found}, rel=1e-3)


@pytest.mark.slow
def test_the_corrected_draws_and_the_page_are_written(made):
    corrected, result = ws.Draws.load(made / "corrected"), result_of(made)
    assert corrected.facts["method"] == "moved" and len(corrected) == NUM_DRAWS
    assert result["correction"]["by"] == "hmc" and 0 <= result["correction"]["acceptance"] <= 1
    assert list(result["compared"]) == ["HMC", "one half of it", "flow", "flow, corrected"]
    page = (made / "report.html").read_text()
    assert "From the prior to the posterior" in page and "J of its paths to those of held-out draws" in page
    names = {"path", "weights", "training", "log-weights", "evidence"}
    assert {path.stem.removeprefix("flow-") for path in (made / "figures").glob("*.png")} == names
    one, all_modes = (result["other_evidences"][name]["value"] for name in sorted(result["other_evidences"]))
    np.testing.assert_allclose(all_modes - one, np.log(2 * 2**2), rtol=1e-5)  # two tanh units: 2! · 2²


@pytest.mark.slow
def test_weights_that_degenerate_are_refused_in_one_line_and_the_rest_is_kept(run, made, capsys, tmp_path):
    flow_files = {path.name: path.read_bytes() for path in (made / "flow").iterdir()}
    options = ["--steps", "40", "--width", "8", "--blocks", "1", "--draws", str(NUM_DRAWS), "--correct", "weights"]
    before = result_of(made)
    assert run_command(["flow", str(run), *options, "--out", str(made), "--resume"]) == 2
    shown = capsys.readouterr()
    assert "efficiency of" in shown.err and "draws count" in shown.err and shown.err.count("\n") == 1
    assert shown.out.splitlines()[-1] == str(made / "report.html")
    after = result_of(made)
    assert "efficiency" in after["correction"]["refused"] and not list((made / "corrected").glob("*"))
    # The flow was loaded and not trained again.
    assert {path.name: path.read_bytes() for path in (made / "flow").iterdir()} == flow_files
    assert after["evidence"] == before["evidence"] and after["gap"] == before["gap"]


@pytest.mark.parametrize("shape", [(4, 12), (1, 40), (20, 1)])
def test_held_out_draws_are_those_that_training_left_out(shape):
    _, draws = prior_draws("noisy_line", shape)
    source = WhitenedSource.around(choose_model(*_line()).condition(_line()[0].train))
    left_out = training_set(source, draws, 0.1).held_out
    found = jax.vmap(jax.vmap(source.vector))(held_out_draws(draws, 0.1, most=100).positions())
    order = lambda rows: rows[np.argsort(rows[:, 0])]
    np.testing.assert_array_equal(order(np.asarray(found).reshape(-1, source.layout.size)), order(left_out))


def _line():
    return ws.data.load("noisy_line"), ModelOptions("2")


def test_nearness_of_regressions_is_in_standard_deviations():
    dataset, draws = prior_draws("noisy_line", (2, 6))
    p = predict(draws, dataset.test.x)
    assert nearness(p, p) == pytest.approx({"mean off by": 0.0, "ratio of std": 1.0}, abs=1e-6)
    first, second = predict(draws[:1], dataset.test.x), predict(draws[1:], dataset.test.x)
    found = nearness(first, second)
    off = (np.asarray(first.mean) - np.asarray(second.mean)) / np.asarray(second.std)
    ratio = np.asarray(first.std) / np.asarray(second.std)
    np.testing.assert_allclose(found["mean off by"], np.sqrt(np.mean(off**2)), rtol=1e-5)
    np.testing.assert_allclose(found["ratio of std"], np.prod(ratio) ** (1 / len(ratio)), rtol=1e-4)
    assert halves(draws, dataset) == pytest.approx(found, rel=1e-6)


def test_nearness_of_classes_is_agreement_and_total_variation():
    dataset, draws = prior_draws("iris", (1, 6))
    p, q = (np.asarray(predict(part, dataset.test.x).probabilities) for part in (draws[:, :3], draws[:, 3:]))
    found = halves(draws, dataset)
    np.testing.assert_allclose(found["total variation"], np.abs(p - q).sum(axis=1).mean() / 2, rtol=1e-5)
    assert found["agreement"] == np.mean(p.argmax(axis=1) == q.argmax(axis=1))


def test_runs_without_chains_are_one_line_that_says_what_to_do(tmp_path, capsys):
    dataset, draws = prior_draws("noisy_line", (5, 1), method="DeepEnsemble")
    folder = save_run(tmp_path / "ensemble", draws, dataset)
    assert run_command(["flow", str(folder)]) == 2
    error = capsys.readouterr().err
    assert "must hold draws of chains, got 5 × 1 networks of DeepEnsemble. Fit with `--method hmc`" in error
    assert error.count("\n") == 1 and not (tmp_path / "ensemble-flow").exists()
    dataset, draws = prior_draws("noisy_line", (1, 40), method="Laplace")
    weighed = dataclasses.replace(draws, log_proposal=draws.log_density)
    assert run_command(["flow", str(save_run(tmp_path / "laplace", weighed, dataset))]) == 2
    assert "got draws from the density of Laplace" in capsys.readouterr().err


def test_unknown_corrections_are_one_line(run, capsys):
    assert run_command(["flow", str(run), "--correct", "weigths"]) == 2
    error = capsys.readouterr().err
    assert "Did you mean 'weights'?" in error and error.count("\n") == 1


@pytest.mark.parametrize(("option", "value"), [("geometry", "nonsense"), ("revisions", "0"), ("given", "loss")])
def test_options_of_populations_are_refused_for_posteriors(run, option, value, capsys):
    assert run_command(["flow", str(run), f"--{option}", value]) == 2
    error = capsys.readouterr().err
    assert f"`--{option}` is for populations, and a posterior must have none, got {value}. Leave it out." in error
    assert error.count("\n") == 1


def test_a_flow_is_a_method_by_name():
    dataset, options = _line()
    posterior = choose_model(dataset, options).condition(dataset.train)
    method = choose_method(posterior, MethodOptions("flow")).method
    assert isinstance(method, FlowAfter) and isinstance(method.sampler, ws.HMC)


@pytest.mark.slow
def test_a_flow_is_annealed_to_the_posterior(tmp_path, monkeypatch):
    pulled = lambda *sizes: dataclasses.replace(tiny_flow(*sizes), prediction=ws.flow.OfPull())
    monkeypatch.setattr("weightscape.cli.flow.small_flow", pulled)
    dataset, draws = prior_draws("iris", (4, 12), method="HMC")
    folder = save_run(tmp_path / "run", draws, dataset)
    options = ["--steps", "40", "--width", "8", "--blocks", "1", "--draws", "30", "--correct", "smc", "--quiet"]
    assert run_command(["flow", str(folder), *options, "--out", str(tmp_path / "flow")]) == 0
    assert result_of(tmp_path / "flow")["correction"]["num_stages"] >= 1
    assert ws.Draws.load(tmp_path / "flow" / "corrected").facts["method"] == "annealed"


@pytest.mark.slow
def test_the_demo_tells_of_a_flow(monkeypatch):
    monkeypatch.setattr("weightscape.cli.demo_flow.flow_method", lambda: tiny_flow(20, 8, 1))
    dataset, draws = prior_draws("iris", (4, 12), method="HMC")
    hmc = Trial(draws, predict(draws, dataset.test.x), {}, 0.0)
    chapter = tell_flow(jax.random.key(0), hmc, dataset, Screen(quiet=True))
    assert chapter.result["training"]["num_train"] == 36 and chapter.result["num_draws"] == 1024
    assert 0 <= chapter.result["total variation"] <= 1 and "HMC" in chapter.finding
    assert [picture.name for picture in chapter.pictures] == [
        "flow-path", "flow-weights", "flow-training", "flow-log-weights",
    ]  # fmt: skip
    assert (
        "total variation of two halves of HMC",
        f"{halves(draws, dataset)['total variation']:.3f}",
    ) in chapter.table.rows
