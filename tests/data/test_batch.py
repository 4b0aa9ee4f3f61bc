import jax
import jax.numpy as jnp
import numpy as np
import pytest

from weightscape.core.checks import InputError, InputTypeError
from weightscape.data import Batch, Scaling


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64, np.uint8, bool])
def test_inputs_take_the_default_float_type(dtype):
    batch = Batch(np.ones((3, 2), dtype), np.zeros(3))
    assert batch.x.dtype == jnp.result_type(float)
    with jax.enable_x64(True):
        assert Batch(np.ones((3, 2), dtype), np.zeros(3)).x.dtype == jnp.float64


@pytest.mark.parametrize(
    ("given", "kept"), [(np.uint8, jnp.int32), (np.int64, jnp.int32), (bool, jnp.int32), (float, jnp.float32)]
)
def test_targets_keep_labels_whole(given, kept):
    assert Batch(np.ones((3, 2)), np.ones(3, given)).y.dtype == kept


def test_lists_are_accepted():
    batch = Batch([[1.0], [2.0]], [0, 1])
    assert batch.x.shape == (2, 1)
    assert batch.y.dtype == jnp.int32
    assert len(batch) == 2


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (np.ones(3), np.ones(3), "got shape (3,). For a single input column pass `x.reshape(-1, 1)`."),
        (np.ones((3, 1)), np.ones(2), "got x of shape (3, 1) and y of shape (2,)."),
        (np.ones((3, 1)), np.float64(1.0), "got x of shape (3, 1) and y of shape ()."),
        (np.ones((0, 1)), np.ones(0), "at least one row"),
        (np.array([[1.0, 2.0], [3.0, np.inf]]), np.ones(2), "`x` of Batch must be finite, got 1 non-finite"),
        (np.array([[1.0, 2.0], [3.0, np.inf]]), np.ones(2), "index (1, 1)"),
        (np.ones((3, 1)), np.array([0.0, 1.0, np.nan]), "`y` of Batch must be finite"),
        (np.full((2, 1), 1e39), np.ones(2), "index (0, 0)"),
        (np.ones((2, 1)), np.array([1, 2**31]), "must fit in 32 bits, got 2147483648"),
    ],
)
def test_bad_values_are_named(x, y, words):
    with pytest.raises(InputError) as caught:
        Batch(x, y)
    assert words in str(caught.value)


@pytest.mark.parametrize("text", ["x", "y"])
def test_text_is_refused(text):
    arrays = {"x": np.ones((2, 1)), "y": np.ones(2), text: np.array(["a", "b"])}
    with pytest.raises(InputTypeError, match=f"`{text}` of Batch must hold real numbers"):
        Batch(**arrays)


def test_a_batch_passes_through_transformations():
    batch = Batch(np.ones((3, 2)), np.arange(3), Scaling(np.zeros(2), np.ones(2)))
    made = jax.jit(lambda b: Batch(2 * b.x, b.y, b.scaling))(batch)
    assert float(made.x.sum()) == 12.0
    assert len(jax.tree.leaves(jax.tree.map(lambda leaf: leaf[None], batch))) == 4
    assert jax.tree.map(lambda leaf: None, batch).x is None
