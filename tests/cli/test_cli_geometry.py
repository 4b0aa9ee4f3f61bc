"""Commands on weights: symmetry, rebase, barrier and prune, on runs whose draws are made by hand."""

import dataclasses
import itertools
import json
import math
import shutil

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from tests.cli.tables import write_csv

import weightscape as ws
from weightscape import geometry
from weightscape.cli.choose import ModelOptions, choose_model
from weightscape.cli.main import run_command
from weightscape.cli.opened_run import open_run
from weightscape.cli.path_loss import best_network, path_losses
from weightscape.cli.rebase import move_draws
from weightscape.cli.run_folder import DATA, Run, read_draws, write_run
from weightscape.core import Silent
from weightscape.core.files import map_arrays, write_arrays
from weightscape.data import TrainingRange
from weightscape.draws import best_position
from weightscape.evaluate import pruning_curve
from weightscape.inference import LINEARISED
from weightscape.symmetry import discover, of_draws

HIDDEN = 3


def make_draws(name: str, activation: str):
    """A small data set, and two chains of six draws from the prior with their log p(D, θ)."""
    dataset = ws.data.load(name)
    posterior = choose_model(dataset, ModelOptions(str(HIDDEN), activation)).condition(dataset.train)
    keys = jax.random.split(jax.random.key(3), (2, 6))
    positions = jax.vmap(jax.vmap(lambda key: posterior.model.sample_position(key, posterior.x)))(keys)
    each = lambda function: jax.tree.map(np.asarray, jax.jit(jax.vmap(jax.vmap(function)))(positions))
    parts = (each(posterior.constrain), each(posterior.log_density))
    facts = ws.core.facts.Facts(method="byhand")
    return dataset, ws.Draws(*parts, posterior.model, posterior.scaling, posterior.example, facts=facts)


def save_run(folder, dataset, draws):
    span = TrainingRange.fit(dataset.train.x, dataset.inputs)
    about = (dataset.name, dataset.name, dataset.task, dataset.target, dataset.inputs, dataset.classes, dataset.schema)
    write_run(folder, Run(*about, span, 0, {"method": "by hand"}), dataset)
    draws.save(folder)
    return folder


@pytest.fixture(scope="module")
def flowers(tmp_path_factory):
    """Three ReLU units and three classes."""
    return save_run(tmp_path_factory.mktemp("flowers") / "run", *make_draws("iris", "relu"))


@pytest.fixture(scope="module")
def flowers_moved(flowers, tmp_path_factory):
    """The same networks after one element that permutes and rescales: other weights, the same functions."""
    opened = open_run(flowers)
    one = jax.tree.map(lambda leaf: jnp.asarray(leaf[0, 0]), opened.draws.params.network)
    symmetry = discover(opened.draws.model.network, one, opened.inputs(2))
    element = symmetry.random(jax.random.key(5))
    element = eqx.tree_at(lambda e: e.permutations, element, (jnp.array([1, 2, 0]),))
    moved = symmetry.apply(opened.draws, element)
    return save_run(tmp_path_factory.mktemp("moved") / "run", opened.dataset, moved)


@pytest.fixture(scope="module")
def line(tmp_path_factory):
    """Three tanh units, one number, and a noise that is inferred."""
    return save_run(tmp_path_factory.mktemp("line") / "run", *make_draws("line", "tanh"))


def result_of(folder):
    return json.loads((folder / "result.json").read_text())


def networks(draws):
    """Incoming and outgoing weights of each unit, and the last shift, for every draw."""
    one, two = (draws.params.network[name] for name in ("layer0", "layer1"))
    into = np.concatenate([one["weight"], one["bias"][:, :, None, :]], axis=2)
    flat = np.concatenate([into, np.swapaxes(two["weight"], 2, 3)], axis=2)
    return np.asarray(flat, np.float64).reshape(-1, *flat.shape[2:]), into.shape[2]


def closest(unit_weights, reference, num_into, signs):
    """Squared distance and transpositions of the closest equivalent network, by trying all of them."""
    best = (math.inf, 0)
    for order in itertools.permutations(range(HIDDEN)):
        for flips in itertools.product(signs, repeat=HIDDEN):
            moved = unit_weights[:, order] * np.array(flips)[None, :]
            cycles = len({min(_cycle(order, i)) for i in range(HIDDEN)})
            best = min(best, (float(np.sum((moved - reference) ** 2)), HIDDEN - cycles))
    return best


def _cycle(order, start):
    seen = [start]
    while (after := order[seen[-1]]) != start:
        seen.append(after)
    return seen


def test_symmetry_of_a_network_and_what_its_prior_shares(flowers, line, tmp_path, capsys):
    assert run_command(["symmetry", str(flowers), "--out", str(tmp_path / "relu")]) == 0
    printed = capsys.readouterr().out
    found, draws = result_of(tmp_path / "relu"), read_draws(flowers)
    assert str(of_draws(draws)) in printed and printed.splitlines()[-1] == str(tmp_path / "relu" / "report.html")
    assert found["network"]["log_order"] == found["with_prior"]["log_order"] == pytest.approx(math.log(6))
    assert (found["network"]["num_scales"], found["with_prior"]["num_scales"]) == (HIDDEN, 0)
    (group,) = found["network"]["groups"]
    assert (group["size"], group["kinds"]) == (HIDDEN, ["permutation", "scaling"])
    members = {(m["path"], m["factor"], m["role"], tuple(m["scale_exponents"])) for m in group["members"]}
    assert members == {
        ("layer0/weight", 1, "produces", (1,)), ("layer0/bias", 0, "produces", (1,)),
        ("layer1/weight", 0, "consumes", (-1,)),
    }  # fmt: skip
    assert found["network"]["lost"] == []
    assert (tmp_path / "relu" / "figures" / "symmetry.png").is_file()
    assert run_command(["symmetry", str(line), "--out", str(tmp_path / "tanh"), "--quiet"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'tanh' / 'report.html'}\n"
    orders = [result_of(tmp_path / "tanh")[part]["log_order"] for part in ("network", "with_prior")]
    assert orders == [pytest.approx(math.log(math.factorial(HIDDEN) * 2**HIDDEN))] * 2


def test_rebased_draws_are_the_closest_and_predict_the_same(line, tmp_path, capsys):
    out = tmp_path / "rebased"
    assert run_command(["rebase", str(line), "--out", str(out)]) == 0
    assert "transpositions a draw" in capsys.readouterr().out
    found, (before, num_into) = result_of(out), networks(read_draws(line))
    expected = [closest(weights, before[0], num_into, (-1, 1)) for weights in before]
    shifts = np.asarray(read_draws(line).params.network["layer1"]["bias"], np.float64).reshape(len(before), -1)
    apart = float(np.mean(np.sum((shifts - shifts[:1]) ** 2, axis=1)))
    assert found["after"]["mean_squared_distance"] == pytest.approx(np.mean([e[0] for e in expected]) + apart, rel=1e-5)
    start = np.mean(np.sum((before - before[:1]) ** 2, axis=(1, 2))) + apart
    assert found["before"]["mean_squared_distance"] == pytest.approx(start, rel=1e-5)
    swaps = [number for _, number in expected]
    assert found["transpositions"] == {"mean": np.mean(swaps), "least": min(swaps), "most": max(swaps)}
    moved = read_draws(out)
    assert np.array_equal(moved.log_density, read_draws(line).log_density)
    assert found["after"]["total_variance"] == pytest.approx(geometry.moments(moved).total_variance)
    assert set(found["after"]) == set(found["before"]) >= {"share_settled", "between_chains", "relative_gap"}
    rows = write_csv(tmp_path / "new.csv", ["x"], [[-1.0], [0.3], [2.0]])
    tables = []
    for run in (line, out):
        assert run_command(["predict", str(run), str(rows), "--out", str(tmp_path / "p.csv"), "--quiet"]) == 0
        tables.append(pd.read_csv(tmp_path / "p.csv")[["mean", "std", "epistemic_std"]].to_numpy())
    # Sums over units in another order: single precision, with numbers of order one.
    np.testing.assert_allclose(tables[1], tables[0], rtol=1e-4, atol=1e-4)
    assert not np.allclose(networks(moved)[0], before)
    original = map_arrays(line / DATA)
    assert all(np.array_equal(array, original[name]) for name, array in map_arrays(out / DATA).items())


@pytest.mark.parametrize(
    ("names", "reference", "matching"),
    [
        (("centre", "weights"), geometry.Centre(), None),
        (("moving-mean", "weights"), geometry.MovingMean(), None),
        (("first", "activations"), None, geometry.ActivationMatching),
    ],
)
def test_references_and_matchings_are_those_of_the_library(flowers, names, reference, matching):
    opened = open_run(flowers)
    matching = matching and matching(opened.draws.model.network, opened.draws.scaling.inputs(opened.dataset.train.x))
    expected = geometry.rebase(opened.draws, reference, matching=matching)
    moved = move_draws(jax.random.key(1), opened, *names, Silent()).draws
    for wanted, came in zip(*map(jax.tree.leaves, (expected.params, moved.params)), strict=True):
        np.testing.assert_array_equal(came, wanted)


@pytest.mark.slow
def test_a_rebased_run_can_be_reported(flowers, tmp_path):
    out = tmp_path / "r"
    assert run_command(["rebase", str(flowers), "--out", str(out), "--quiet"]) == 0
    assert {file.name for file in (out / "figures").glob("*.png")} == {"spread.png", "marginals.png"}
    again = ["rebase", str(flowers), "--reference", "centre", "--matching", "activations", "--overwrite", "--quiet"]
    assert run_command([*again, "--out", str(out)]) == 0
    assert (result_of(out)["reference"], result_of(out)["matching"]) == ("centre", "activations")
    assert run_command(["report", str(out), "--out", str(tmp_path / "page"), "--quiet"]) == 0
    assert "re-based" in (tmp_path / "page" / "report.html").read_text()


def test_a_density_is_sampled_first_and_its_linearised_predictions_are_not_kept(flowers, tmp_path, capsys):
    folder, out = tmp_path / "run", tmp_path / "r"
    shutil.copytree(flowers, folder)
    draws = read_draws(flowers)
    dataclasses.replace(draws, facts=draws.facts.plus(**{LINEARISED: True})).save(folder)
    density = geometry.compact(draws, rebased=False)
    rows = map_arrays(flowers / DATA)
    write_arrays(folder / DATA, {name: np.array(rows[name]) for name in ("x_test", "y_test")})  # as of too many rows
    dataclasses.replace(density, facts=density.facts.plus(**{LINEARISED: True})).save(folder)
    assert run_command(["rebase", str(folder), "--draws", "9", "--out", str(out)]) == 0
    assert "these draws predict by the networks drawn" in " ".join(capsys.readouterr().out.split())
    moved = read_draws(out)
    assert (moved.num_chains, moved.num_draws) == (1, 9) and not moved.facts[LINEARISED]
    assert not (out / "approximation.json").exists()
    assert set(result_of(out)["after"]) == {"mean_squared_distance", "total_variance"}  # one chain, no training rows
    assert set(map_arrays(out / DATA)) == {"x_test", "y_test"}


def test_barriers_vanish_where_symmetry_alone_is_between(flowers, flowers_moved, tmp_path, capsys):
    command = ["barrier", str(flowers), str(flowers_moved), "--points", "5", "--out", str(tmp_path), "--section"]
    assert run_command([*command, "--bend"]) == 0
    assert "once B is re-based" in " ".join(capsys.readouterr().out.split())
    found = result_of(tmp_path)
    assert found["same_scaling"] and set(found["barriers"]) == {"training rows", "test rows"}
    opened = open_run(flowers)
    ends = [best_position(run.draws).network for run in (opened, open_run(flowers_moved))]
    for rows, batch in (("training rows", opened.dataset.train), ("test rows", opened.dataset.test)):
        by_path = found["barriers"][rows]
        assert list(by_path) == ["linear", "re-based", "geodesic", "one bend"]
        x, y = np.asarray(opened.draws.scaling.inputs(batch.x), np.float64), np.asarray(batch.y)
        expected = [_loss(ends, t, x, y) for t in np.linspace(0, 1, 5)]
        np.testing.assert_allclose(by_path["linear"]["losses"], expected, rtol=1e-4)
        # The networks are one function: all that is left is rounding of losses in single precision.
        size = 1e-4 * (1 + max(expected))
        assert by_path["linear"]["value"] > size
        assert by_path["re-based"]["value"] < size and by_path["geodesic"]["value"] < size
        assert np.ptp(by_path["re-based"]["losses"]) < size
    by_path = found["barriers"]["training rows"]
    loss, runs = path_losses(opened)["training rows"], (opened, open_run(flowers_moved))
    bend = geometry.train_bend(jax.random.fold_in(jax.random.key(0), 1), loss, *(best_network(r.draws) for r in runs))
    expected = geometry.barrier(bend, loss, num_points=5).losses
    np.testing.assert_allclose(by_path["one bend"]["losses"], expected, rtol=1e-4)
    assert np.mean(expected) < np.mean(by_path["linear"]["losses"])
    names = {file.stem for file in (tmp_path / "figures").glob("*.png")}
    assert names == {"barriers-training", "barriers-test", "section"}


def _loss(ends, t, x, y):
    """Mean negative log probability of the classes, of the network on the line, written out."""
    mixed = jax.tree.map(lambda a, b: (1 - t) * np.asarray(a, np.float64) + t * np.asarray(b, np.float64), *ends)
    hidden = np.maximum(x @ mixed["layer0"]["weight"] + mixed["layer0"]["bias"][None], 0)
    logits = hidden @ mixed["layer1"]["weight"] + mixed["layer1"]["bias"][None]
    logits = logits - logits.max(axis=1, keepdims=True)
    return -np.mean(logits[np.arange(len(y)), y] - np.log(np.exp(logits).sum(axis=1)))


def test_barriers_with_a_noise_that_is_inferred(line, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(line, other)
    draws = read_draws(line)
    draws[:, ::2][1].save(other)
    assert run_command(["barrier", str(line), str(other), "--out", str(tmp_path / "b"), "--quiet"]) == 0
    by_path = result_of(tmp_path / "b")["barriers"]["training rows"]
    assert list(by_path) == ["linear", "re-based"]  # tanh units have no scales, so no spheres
    assert np.all(np.isfinite(by_path["re-based"]["losses"]))
    loss = geometry.loss_of(open_run(line).posterior())
    start = draws.model.place(best_position(draws)).parameters
    assert by_path["linear"]["losses"][0] == pytest.approx(float(loss(start)), rel=1e-5)


@pytest.mark.parametrize(("options", "by"), [([], None), (["--by", "snr", "--no-rebase"], geometry.BySignalToNoise())])
def test_pruning_is_that_of_the_library(flowers, tmp_path, options, by):
    command = ["prune", str(flowers), "--shares", "1,0.4", "--out", str(tmp_path), "--quiet"]
    assert run_command([*command, *options]) == 0
    found, opened = result_of(tmp_path), open_run(flowers)
    draws = opened.draws if options else geometry.rebase(opened.draws, geometry.Centre())
    expected = pruning_curve(jax.random.key(0), draws, opened.dataset.test, by=by, shares=(1.0, 0.4))
    assert [(row["keep"], row["num_kept"]) for row in found["rows"]] == [(row.keep, row.num_kept) for row in expected]
    for row, wanted in zip(found["rows"], expected, strict=True):
        assert row["samples"] == pytest.approx(dict(wanted.samples), rel=1e-5)
        assert row["mean_network"] == pytest.approx(dict(wanted.mean_network), rel=1e-5)
    whole = ws.scores(ws.predict(opened.draws, opened.dataset.test.x), opened.dataset.test.y)
    assert found["rows"][0]["samples"]["nll"] == pytest.approx(float(whole["nll"]), rel=1e-5)
    assert found["rebased"] == (not options) and (tmp_path / "figures" / "pruning.png").is_file()


def complaint(capsys, arguments):
    """The one line that the command says on its way out."""
    capsys.readouterr()
    assert run_command([str(argument) for argument in arguments]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("weightscape: "), lines
    return lines[0]


def test_mistakes_are_one_line_and_write_nothing(flowers, line, tmp_path, capsys):
    out = tmp_path / "out"
    mistakes = [
        (["symmetry", tmp_path / "none"], "must be the folder of a run"),
        (["rebase", flowers, "--reference", "center"], "Did you mean 'centre'? Known: centre, first, moving-mean."),
        (["rebase", flowers, "--matching", "hope"], "Known: activations, weights."),
        (["rebase", flowers, "--draws", "5"], "must have a density, got one of byhand"),
        (["barrier", flowers, line], "must have the same network"),
        (["barrier", flowers, flowers], "must be two runs, got one"),
        (["barrier", flowers, tmp_path / "none"], "must be the folder of a run"),
        (["prune", flowers, "--by", "size"], "Known: magnitude, sd, snr."),
        (["prune", flowers, "--shares", "1,x"], "`--shares` must be numbers, got '1,x'"),
        (["prune", flowers, "--shares", "1.5"], "`--shares` must be above 0 and at most 1"),
    ]
    for arguments, message in mistakes:
        assert message in complaint(capsys, [*arguments, "--out", out])
    assert not out.exists()
    assert "must not hold a run already" in complaint(capsys, ["rebase", flowers, "--out", line])
    itself = ["rebase", flowers, "--out", flowers, "--overwrite"]
    assert "must not be the run itself" in complaint(capsys, itself) and len(read_draws(flowers)) == 12


@pytest.mark.parametrize("command", ["symmetry", "rebase", "prune"])
def test_a_damaged_run_is_one_line(flowers, tmp_path, capsys, command):
    shutil.copytree(flowers, tmp_path / "run")
    chunk = next((tmp_path / "run").glob("draws-*.safetensors"))
    chunk.write_bytes(chunk.read_bytes()[:-10])
    assert "whole safetensors file" in complaint(capsys, [command, tmp_path / "run", "--out", tmp_path / "out"])
    (tmp_path / "run" / "draws.json").write_text("{")
    assert "must hold JSON" in complaint(capsys, [command, tmp_path / "run", "--out", tmp_path / "out"])
    assert not (tmp_path / "out").exists()


def test_a_lone_network_has_nothing_to_compare(flowers, tmp_path, capsys):
    shutil.copytree(flowers, tmp_path / "run")
    read_draws(flowers)[0, 0].save(tmp_path / "run")
    for command in ("rebase", "prune"):
        assert "at least two" in complaint(capsys, [command, tmp_path / "run", "--out", tmp_path / "out"])
    assert not (tmp_path / "out").exists()


def test_members_of_an_ensemble_are_chains_of_one_draw(flowers, tmp_path):
    shutil.copytree(flowers, tmp_path / "run")
    read_draws(flowers)[:, 0].save(tmp_path / "run")
    assert run_command(["rebase", str(tmp_path / "run"), "--out", str(tmp_path / "out"), "--quiet"]) == 0
    assert set(result_of(tmp_path / "out")["after"]) == {"mean_squared_distance", "total_variance"}
