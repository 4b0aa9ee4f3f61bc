"""Draws: slices, round trips to the bit, and what damaged folders say."""

import contextlib
import json
import os
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.known import inferred_noise, linear

import weightscape as ws
from weightscape.core import InputError

METHOD = ws.HMC(num_chains=4, num_draws=25, num_warmup=150, num_leapfrog=4)


@pytest.fixture(scope="module")
def draws():
    return METHOD.run(jax.random.key(0), inferred_noise().posterior)


def leaves(draws):
    return jax.tree.leaves(draws.sampled())


def assert_same_bits(left, right):
    assert jax.tree.structure(left.sampled()) == jax.tree.structure(right.sampled())
    for one, other in zip(leaves(left), leaves(right), strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        assert np.array_equal(one, other)


def test_load_after_save_gives_the_same_bits_and_predictions(draws, tmp_path):
    draws.save(tmp_path / "run")
    loaded = ws.Draws.load(tmp_path / "run")
    assert_same_bits(draws, loaded)
    assert loaded.facts["settings"] == draws.facts["settings"]
    assert isinstance(loaded.log_density, np.memmap)
    x = np.linspace(-1, 1, 5)[:, None]
    assert np.array_equal(ws.predict(draws, x).std, ws.predict(loaded, x).std)


def test_a_run_that_stores_as_it_goes_gives_the_same_draws(draws, tmp_path):
    stored = METHOD.run(jax.random.key(0), inferred_noise().posterior, store=tmp_path / "run")
    assert_same_bits(draws, stored)
    assert_same_bits(draws, ws.Draws.load(tmp_path / "run"))


def test_scaling_and_labels_survive(tmp_path):
    data = ws.data.load("iris")
    model = ws.Model(ws.networks.MLP(hidden=(3,)), ws.likelihoods.Categorical(3), ws.priors.FanInNormal(1.5))
    draws = ws.DeepEnsemble(num_members=2, num_steps=20).run(jax.random.key(0), model.condition(data.train))
    draws.save(tmp_path / "run")
    loaded = ws.Draws.load(tmp_path / "run")
    expected = ws.predict(draws, data.test.x).probabilities
    assert np.array_equal(ws.predict(loaded, data.test.x).probabilities, expected)
    assert float(loaded.model.prior.scale) == 1.5


def test_saving_again_replaces_the_old_draws(draws, tmp_path):
    draws.save(tmp_path / "run")
    draws.thin(5).save(tmp_path / "run")
    assert ws.Draws.load(tmp_path / "run").num_draws == 5
    assert len(list((tmp_path / "run").glob("*.safetensors"))) == 2


def test_slices_keep_both_axes(draws):
    scale = np.asarray(draws.params.likelihood["scale"])
    assert np.array_equal(draws[1:3, ::2].params.likelihood["scale"], scale[1:3, ::2])
    assert np.array_equal(draws[-1].params.likelihood["scale"], scale[-1:])
    assert np.array_equal(draws[:, 7].log_density, np.asarray(draws.log_density)[:, 7:8])
    assert np.array_equal(draws[[2, 0]].info["energy"], np.asarray(draws.info["energy"])[[2, 0]])
    assert len(draws) == 100
    assert np.array_equal(draws.flat().params.likelihood["scale"], scale.reshape(-1))


def test_what_is_noted_stays_with_its_draws(draws, tmp_path):
    """Through slices, disk, merging, combining and splitting; whole numbers stay whole."""
    place = np.arange(100).reshape(4, 25)
    noted = draws.with_info(digit=3, place=place)
    assert set(noted.info) == {*draws.info, "digit", "place"} and noted.info["digit"].shape == (4, 25)
    assert np.array_equal(noted[[2, 0], 1:3].info["place"], place[[2, 0], 1:3])
    noted.save(tmp_path / "run")
    assert_same_bits(noted, ws.Draws.load(tmp_path / "run"))
    both = noted.merge([draws.with_info(digit=5, place=place)])
    assert np.issubdtype(both.info["digit"].dtype, np.integer)
    assert np.array_equal(both.info["digit"], np.repeat([3, 5], 4)[:, None] + 0 * np.tile(place, (2, 1)))
    assert np.array_equal(ws.draws.combine([both]).info["place"], np.tile(place, (2, 1)).reshape(1, -1))
    assert np.array_equal(ws.split_runs(both, 0.25).held_out.info["digit"], np.full((2, 25), 5))
    assert np.array_equal(noted.with_info(digit=4).info["digit"], np.full((4, 25), 4))
    with pytest.raises(InputError, match=r"`digit` of with_info must be one value or have the shape .* got \(4,\)"):
        draws.with_info(digit=np.arange(4))


def test_merge_puts_chains_side_by_side(draws):
    merged = draws[:2].merge([draws[2:]])
    assert_same_bits(merged, draws)
    with pytest.raises(InputError, match="Merged Draws must have 25 draws"):
        draws.merge([draws[:, :5]])


def test_batches_stream_all_draws(draws):
    parts = list(draws.batches(10))
    assert [part.num_draws for part in parts] == [10, 10, 5]
    assert np.array_equal(np.concatenate([part.log_density for part in parts], axis=1), draws.log_density)


def test_arviz_gets_every_group(draws):
    tree = draws.to_arviz()
    assert np.array_equal(tree["posterior"]["likelihood.scale"], draws.params.likelihood["scale"])
    assert np.array_equal(tree["sample_stats"]["lp"], draws.log_density)
    assert tree["posterior"].sizes["chain"] == 4


def test_a_network_of_ones_own_is_passed_to_load(tmp_path):
    network = ws.networks.Function(lambda key, x: {"w": jnp.zeros((x.shape[1], 1))}, lambda params, x: x @ params["w"])
    problem = linear()
    model = ws.Model(network, ws.likelihoods.Gaussian(0.3), ws.priors.Normal())
    draws = ws.MAP(num_steps=10).run(jax.random.key(0), model.condition(ws.Batch(problem.x, problem.y)))
    draws.save(tmp_path / "run")
    with pytest.raises(InputError, match=r"got 'Function'. Pass it: `load\(path, network=...\)`"):
        ws.Draws.load(tmp_path / "run")
    assert_same_bits(ws.Draws.load(tmp_path / "run", network=network), draws)
    with pytest.raises(InputError, match="belong to another network"):
        ws.Draws.load(tmp_path / "run", network=ws.networks.MLP(hidden=()))


def damage_truncate(folder):
    chunk = next(folder.glob("draws-*.safetensors"))
    chunk.write_bytes(chunk.read_bytes()[:-7])


def damage_header(folder):
    next(folder.glob("draws-*.safetensors")).write_bytes(b"\xff" * 64)


def damage_missing_chunk(folder):
    next(folder.glob("draws-*.safetensors")).unlink()


def edit(folder, **changes):
    manifest = json.loads((folder / "draws.json").read_text())
    (folder / "draws.json").write_text(json.dumps({**manifest, **changes}))


def damage_type(folder):
    manifest = json.loads((folder / "draws.json").read_text())
    manifest["header"]["dict"]["prior"]["type"] = "os.system"
    edit(folder, header=manifest["header"])


DAMAGES = {
    "truncated": (damage_truncate, "truncated or damaged"),
    "garbage": (damage_header, "truncated or damaged"),
    "missing": (damage_missing_chunk, "must be a file, got nothing there"),
    "newer": (lambda folder: edit(folder, version=99), "version 2 or older, got version 99. Upgrade"),
    "foreign": (lambda folder: edit(folder, format="other"), "another format"),
    "not json": (lambda folder: (folder / "draws.json").write_text("{"), "must hold JSON"),
    "no manifest": (lambda folder: (folder / "draws.json").unlink(), "must hold draws.json"),
    "escaping": (lambda folder: edit(folder, chunks=["../../etc/passwd"]), "must lie in that folder"),
    "empty": (lambda folder: edit(folder, chunks=[]), "must hold draws, got none"),
    "unknown part": (damage_type, "must be registered, got 'os.system'"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES)
def test_damaged_folders_say_what_is_wrong(draws, tmp_path, damage, message):
    draws.save(tmp_path / "run")
    damage(tmp_path / "run")
    with pytest.raises(InputError, match=message) as caught:
        ws.Draws.load(tmp_path / "run")
    assert "\n" not in str(caught.value)


def test_nowhere_and_foreign_folders(draws, tmp_path):
    with pytest.raises(InputError, match="must be a folder of draws"):
        ws.Draws.load(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="must be a folder, got a file"):
        draws.save(tmp_path / "file")


def test_a_full_disk_leaves_the_old_draws(draws, tmp_path, monkeypatch):
    draws.save(tmp_path / "run")

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("weightscape.core.files.save_file", full)
    with pytest.raises(OSError, match="could not be written: No space left on device"):
        draws.thin(5).save(tmp_path / "run")
    monkeypatch.undo()
    assert_same_bits(ws.Draws.load(tmp_path / "run"), draws)
    assert not list((tmp_path / "run").glob(".*"))


def test_every_prefix_of_the_writes_loads_or_is_absent(draws, tmp_path, monkeypatch):
    """A kill between any two renames leaves a loadable folder, the old one or the new one, or nothing."""
    real, count = os.replace, [0]

    def dying(source, target, limit):
        if count[0] == limit:
            raise KeyboardInterrupt
        count[0] += 1
        real(source, target)

    for limit in range(8):
        folder = tmp_path / "run"
        shutil.rmtree(folder, ignore_errors=True)
        draws.thin(5).save(folder)
        count[0] = 0
        with monkeypatch.context() as patch:
            patch.setattr("os.replace", lambda source, target, limit=limit: dying(source, target, limit))
            with contextlib.suppress(KeyboardInterrupt):
                draws.save(folder)
        assert ws.Draws.load(folder).num_draws in (5, 25)
    assert ws.Draws.load(folder).num_draws == 25
