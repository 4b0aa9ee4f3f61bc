"""A tiny version of the experiment that reads digits off weights."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from experiments.implicit import siren, store
from experiments.implicit.readers import Flat, readers
from experiments.implicit.reading import Examples, NoisyCrossEntropy, Run, table
from experiments.implicit.settings import SMALL, pictures
from experiments.implicit_digits import main

from weightscape import symmetry
from weightscape.core import InputError

TINY = SMALL._replace(
    num_train=6, num_validation=2, num_test=4, chunk_size=6,
    fitting=SMALL.fitting._replace(hidden=(4, 4), num_steps=200, group_size=3),
    reading=SMALL.reading._replace(
        sizes=dataclasses.replace(SMALL.reading.sizes, width=4, edge_width=2, num_blocks=1),
        flat_hidden=(4,), wide_hidden=(8,), num_steps=2, batch_size=4,
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder with the networks of all pictures."""
    folder = tmp_path_factory.mktemp("implicit")
    store.fit_all(jax.random.key(0), pictures(TINY), TINY, folder)
    return folder


@pytest.fixture(scope="module")
def found():
    """The symmetry of the sine networks."""
    params = siren.start(jax.random.key(0), TINY.fitting)
    return symmetry.discover(siren.network(TINY.fitting), params, siren.pixels(64))


def test_sine_units_may_be_permuted_and_flipped_and_rendering_stays(found):
    params = siren.start(jax.random.key(0), TINY.fitting)
    assert [group.kinds for group in found.groups] == [("permutation", "sign")] * 2
    moved = found.apply(params, found.random(jax.random.key(1)))
    images = [siren.render(each, TINY.fitting, 64) for each in (params, moved)]
    # sums of at most four terms of order one in float32, through two sines of slope four
    np.testing.assert_allclose(*images, atol=64 * np.finfo(np.float32).eps)


def test_the_first_layer_starts_within_its_bounds_and_the_phases_within_half_a_period():
    fitting = TINY.fitting._replace(hidden=(400, 400))
    params = siren.start(jax.random.key(0), fitting)
    w, half = fitting.frequency, np.pi / (2 * fitting.frequency)
    bounds = {"layer0": (1 / 2, half), "layer1": ((6 / 400) ** 0.5 / w, half), "layer2": ((6 / 400) ** 0.5 / w, 0.0)}
    for name, (of_weights, of_shifts) in bounds.items():
        widest = [float(jnp.max(jnp.abs(params[name][leaf]))) for leaf in ("weight", "bias")]
        # the largest of 400 uniform numbers is below 0.96 of the bound once in ten million
        assert 0.96 * of_weights <= widest[0] <= of_weights
        assert 0.96 * of_shifts <= widest[1] <= of_shifts


def test_a_fitted_network_draws_its_picture_and_its_error_is_the_one_reported(filled):
    stored, given = store.read_all(TINY, filled), pictures(TINY)
    drawn = jax.vmap(lambda params: siren.render(params, TINY.fitting, 64))(stored.params)
    errors = np.mean((np.asarray(drawn) - given.images) ** 2, axis=1)
    np.testing.assert_allclose(-10 * np.log10(errors), stored.psnr, atol=1e-3)
    constant = np.mean((given.images - given.images.mean(axis=1, keepdims=True)) ** 2, axis=1)
    assert np.all(errors < constant)
    others = np.mean((np.asarray(drawn)[:, None] - given.images[None]) ** 2, axis=2)
    assert np.array_equal(np.argmin(others, axis=1), np.arange(len(given.images)))


def test_a_stopped_fit_goes_on_to_the_same_numbers_and_other_settings_are_refused(filled):
    before = store.read_all(TINY, filled)
    first = filled / "networks" / "chunk000.safetensors"
    stamp = first.stat().st_mtime_ns
    (filled / "networks" / "chunk001.safetensors").unlink()
    store.fit_all(jax.random.key(0), pictures(TINY), TINY, filled)
    assert first.stat().st_mtime_ns == stamp
    jax.tree.map(np.testing.assert_array_equal, store.read_all(TINY, filled), before)
    with pytest.raises(InputError, match="Choose another folder"):
        store.fit_all(jax.random.key(0), pictures(TINY), TINY._replace(num_test=3), filled)


@pytest.mark.parametrize(
    ("name", "invariant"),
    [
        pytest.param("metanet, permutations and signs", True, marks=pytest.mark.slow),
        pytest.param("metanet, permutations and signs, 32 probes", True, marks=pytest.mark.slow),
        pytest.param("metanet, permutations", False, marks=pytest.mark.slow),
        ("flat", False),
        ("flat, canonical form", True),
    ],
)
def test_who_sees_that_a_network_was_moved(filled, found, name, invariant):
    networks = store.read_all(TINY, filled).params
    one = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), networks)
    moved = found.apply(one, found.random(jax.random.key(5)))
    reader = _with_a_say(readers(networks, TINY)[name].make(jax.random.key(1)))
    scores = [np.asarray(eqx.filter_jit(reader)(params)) for params in (one, moved)]
    # scores of order one are sums of order one in float32, through a few layers that may enlarge errors a hundredfold
    assert np.allclose(*scores, rtol=1e-4, atol=1e-4) == invariant
    assert np.std(scores[0]) > 1e-2


def test_the_loss_without_noise_is_the_cross_entropy_and_moves_do_not_change_it_where_they_cannot(filled, found):
    stored, classes = store.read_all(TINY, filled), jnp.asarray(pictures(TINY).classes)
    batch = jax.tree.map(jnp.asarray, Examples(stored.params, classes))
    flat, canonical = (Flat.of(jax.random.key(1), batch.params, (8,), group) for group in (None, found))
    silent = jax.tree.map(lambda leaf: 0.0, batch.params)
    for model in (flat, canonical):
        scores = np.asarray(jax.vmap(model)(batch.params), np.float64)
        expected = np.mean(np.log(np.sum(np.exp(scores), axis=1)) - scores[np.arange(12), np.asarray(classes)])
        still, moved = (
            float(NoisyCrossEntropy(silent, group)(model, jax.random.key(2), batch)) for group in (None, found)
        )
        assert still == pytest.approx(expected, rel=1e-5)
        assert (moved == pytest.approx(expected, rel=1e-4)) == (model is canonical)
    noisy = NoisyCrossEntropy(jax.tree.map(lambda leaf: 1.0, batch.params), None)
    assert abs(float(noisy(flat, jax.random.key(2), batch)) - float(noisy(flat, jax.random.key(3), batch))) > 1e-3


def test_the_table_has_means_and_standard_errors():
    runs = [Run("one", seed, test, 80.0, 99.0, 3.0, 1234, 0.5) for seed, test in enumerate((90.0, 91.0, 95.0))]
    # the standard error of 90, 91, 95: √(7 / 3)
    assert table(runs)[2] == "| one | 3 | 92.00 ± 1.53 | 80.00 ± 0.00 | 99.00 ± 0.00 | 1,234 | 0.5 | 3 |"


@pytest.mark.slow
def test_the_small_version_runs_and_writes_everything(tmp_path):
    main(tmp_path, TINY, {"fit", "read"})
    text = (tmp_path / "fit.md").read_text(encoding="utf-8") + (tmp_path / "read.md").read_text(encoding="utf-8")
    assert "12 networks" in text
    assert text.count("| metanet") == 3
    assert text.count("| flat") == 5
    assert (tmp_path / "reconstructions.png").exists()
    assert len(list((tmp_path / "runs").glob("*.json"))) == 8


def _with_a_say(reader):
    """A metanet says zero at first; this one does not."""
    if isinstance(reader, Flat):
        return reader
    weight = reader.head.outer.weight
    return eqx.tree_at(lambda r: r.head.outer.weight, reader, jax.random.normal(jax.random.key(0), weight.shape))
