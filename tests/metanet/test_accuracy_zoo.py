"""The accuracy zoo: its training against optax, its store, its scores, and one tiny run."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from experiments import accuracy_zoo
from experiments.zoo import fitting, settings, store
from experiments.zoo.baselines import statistics
from experiments.zoo.patches import apply_by_patches
from experiments.zoo.training import train_many
from scipy.stats import kendalltau

import weightscape as ws
from weightscape.core import InputError
from weightscape.core.files import map_arrays, write_arrays
from weightscape.metanet import Sizes

TINY = settings.Zoo(20, 10, (2, 6), (5, 60), (2, 4), None, None)
QUICK = fitting.Reading(2, 3, 8, 1e-3, 0.05, Sizes(width=4, edge_width=2, num_blocks=1, num_heads=1), 4, 5)


@pytest.fixture
def digits(tmp_path, monkeypatch):
    """MNIST's file with 60 images of noise, darker for larger labels."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, 100)
    x = (rng.uniform(0, 1, (100, 28, 28)) * (labels[:, None, None] + 1) * 25).astype(np.uint8)
    parts = {"x_train": x[:60], "y_train": labels[:60], "x_test": x[60:], "y_test": labels[60:]}
    np.savez(tmp_path / "mnist.npz", **parts)
    monkeypatch.setenv("WEIGHTSCAPE_DATA", str(tmp_path))


@pytest.fixture
def tiny(digits, monkeypatch):
    monkeypatch.setattr(settings, "SMALL", TINY)
    monkeypatch.setattr(fitting, "SMALL", QUICK)


def test_patches_give_what_convolutions_give(x64):
    network = ws.networks.ConvNet(channels=(3, 2), kernel=3, hidden=(4,), outputs=5)
    x = jax.random.normal(jax.random.key(0), (4, 9, 7, 2))
    params = jax.tree.map(lambda leaf: leaf + 0.1, network.init(jax.random.key(1), x))
    assert np.allclose(apply_by_patches(network, params, x), network.apply(params, x), rtol=0, atol=1e-12)
    even = ws.networks.ConvNet(channels=(3, 2), kernel=2, outputs=5)
    with pytest.raises(InputError, match="Patches need an odd kernel"):
        apply_by_patches(even, params, x)


def small_images() -> settings.Images:
    key_x, key_test, key_noise = jax.random.split(jax.random.key(3), 3)
    draw = lambda key, count: jax.random.normal(key, (count, 3))
    labels = jnp.arange(12) % 10
    return settings.Images(
        draw(key_x, 12), labels, draw(key_test, 8), labels[:8], jax.random.uniform(key_noise, (12,)), (labels + 4) % 10
    )


def small_recipes() -> settings.Recipes:
    """Four networks that see one point each, so that their batches are known; the last has only wrong labels."""
    return settings.Recipes(
        step_size=jnp.array([0.01, 0.02, 0.03, 0.02]),
        momentum=jnp.array([0.9, 0.0, 0.5, 0.7]),
        weight_decay=jnp.array([0.1, 1.0, 2.0, 0.5]),
        is_adam=jnp.array([True, True, False, False]),
        initial_scale=jnp.array([1.0, 0.5, 2.0, 1.0]),
        num_steps=jnp.array([7, 3, 5, 4]),
        batch_size=jnp.array([1, 4, 2, 3]),
        first_point=jnp.array([0, 11, 5, 6]),
        num_points=jnp.array([1, 1, 1, 1]),
        label_noise=jnp.array([0.0, 0.0, 0.0, 1.0]),
        noise_shift=jnp.array([3, 4, 5, 8]),
    )


def by_hand(network, images, recipe, start):
    """One network by optax."""
    loss = lambda params: optax.softmax_cross_entropy_with_integer_labels(
        network.apply(params, images.x_train[recipe.first_point][None])[0], label
    )
    place = (recipe.first_point + recipe.noise_shift) % 12
    label = images.other[place] if recipe.label_noise == 1 else images.y_train[recipe.first_point]
    plain = optax.chain(optax.ema(recipe.momentum), optax.scale(20.0))
    adam = optax.scale_by_adam(b1=recipe.momentum, b2=0.99, eps=1e-8)
    rule = optax.chain(
        adam if recipe.is_adam else plain,
        optax.add_decayed_weights(recipe.weight_decay),
        optax.scale(-recipe.step_size),
    )
    params = jax.tree.map(lambda leaf: recipe.initial_scale * leaf, start)
    state = rule.init(params)
    for _ in range(recipe.num_steps):
        update, state = rule.update(jax.grad(loss)(params), state, params)
        params = optax.apply_updates(params, update)
    return params


def test_many_networks_train_as_each_alone_by_optax(x64):
    network, images, recipes = ws.networks.MLP(hidden=(4,), outputs=10), small_images(), small_recipes()
    keys = jax.random.split(jax.random.key(0), 4)
    params, accuracies = train_many(keys, network, recipes, images, 4)
    for i in range(4):
        recipe = jax.tree.map(lambda leaf, i=i: leaf[i].item(), recipes)
        start = network.init(jax.random.fold_in(keys[i], 0), images.x_train[:1])
        expected = by_hand(network, images, recipe, start)
        mine = jax.tree.map(lambda leaf, i=i: leaf[i], params)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11), mine, expected)
        right = jnp.argmax(network.apply(expected, images.x_test), axis=-1) == images.y_test
        assert np.isclose(accuracies[i], jnp.mean(right))


def test_recipes_stay_within_their_ranges():
    zoo = TINY._replace(num_networks=500)
    drawn = settings.recipes(jax.random.key(0), zoo, 60)
    for values, (low, high) in (
        (drawn.num_steps, zoo.steps),
        (drawn.num_points, zoo.points),
        (drawn.batch_size, zoo.batch),
    ):
        assert (values.min(), values.max()) == (low, high)
    assert 0.4 < np.mean(drawn.label_noise == 0) < 0.6  # 500 coins: 4.5 standard deviations
    assert drawn.first_point.max() < 60


def test_a_zoo_is_stored_and_goes_on_where_it_was(tmp_path, digits):
    said = []
    store.make(tmp_path, "mlp", TINY, said.append)
    assert len(said) == 2
    whole = store.load(tmp_path, "mlp", TINY)
    assert [len(part.accuracies) for part in whole] == [12, 3, 5]
    (tmp_path / "mlp_001.safetensors").unlink()
    with pytest.raises(InputError, match=r"must be whole, got no \['mlp_001.safetensors'\]. Run `zoo mlp` first."):
        store.load(tmp_path, "mlp", TINY)
    store.make(tmp_path, "mlp", TINY, said.append)
    assert len(said) == 3
    jax.tree.map(np.testing.assert_array_equal, store.load(tmp_path, "mlp", TINY), whole)
    chunk = {name: np.array(leaf) for name, leaf in map_arrays(tmp_path / "mlp_000.safetensors").items()}
    chunk["weights/layer1/weight"][2, 0, 0] = np.inf
    write_arrays(tmp_path / "mlp_000.safetensors", chunk)
    left = store.load(tmp_path, "mlp", TINY)
    kept = lambda of: np.delete(np.concatenate([of(part) for part in whole]), chunk["row"][2], axis=0)
    for of in (lambda part: part.accuracies, lambda part: part.params["layer1"]["weight"]):
        assert np.array_equal(np.concatenate([of(part) for part in left]), kept(of))


def test_statistics_and_scores_by_hand():
    leaf = np.array([[1.0, 2.0, 3.0, 4.0, 10.0], [0.0, 0.0, 0.0, 0.0, 0.0]])
    assert np.allclose(statistics({"a": leaf}), [[4.0, 10.0, 1.0, 2.0, 3.0, 4.0, 10.0], [0.0] * 7])
    part = store.Trained({}, np.array([0.1, 0.5, 0.6, 0.8]))
    assert fitting.score(part.accuracies, part) == (1.0, 1.0)
    guess = np.array([0.2, 0.4, 0.8, 0.6])
    assert np.allclose(fitting.score(guess, part), (kendalltau(guess, part.accuracies).statistic, 1 - 0.025 / 0.065))
    assert fitting.score(np.full(4, 0.5), part) == (0.0, 0.0)
    worse = fitting.Predicted(np.full(4, 0.5), guess)
    better = fitting.Predicted(part.accuracies, np.zeros(4))
    assert fitting.best(store.Parts(part, part, part), [worse, better, worse]) is better


def test_a_tiny_run_writes_its_table(tmp_path, tiny):
    accuracy_zoo.main(tmp_path, "zoo", "mlp", [], small=True)
    accuracy_zoo.main(tmp_path, "read", "mlp", ["trees on statistics", "MLP on all weights"], small=True)
    text = (tmp_path / "small" / "mlp.md").read_text(encoding="utf-8")
    assert "mlp: 12 + 3 + 5 networks" in text
    assert all(f"| {name} | 2 | " in text for name in ("trees on statistics", "MLP on all weights"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mlp", "convnet"])
def test_every_reader_runs_on_every_kind(kind, tmp_path, tiny):
    accuracy_zoo.main(tmp_path, "zoo", kind, [], small=True)
    accuracy_zoo.main(tmp_path, "read", kind, [], small=True)
    rows = [
        line for line in (tmp_path / "small" / f"{kind}.md").read_text(encoding="utf-8").splitlines() if "± " in line
    ]
    assert len(rows) == 5
    assert "nan" not in "".join(rows)
