import json

import jax.numpy as jnp
import numpy as np

from weightscape.core.config import decode, encode
from weightscape.data import TrainingRange

TRAIN = jnp.array([[0.0, 10.0, 7.0], [1.0, 30.0, 7.0], [0.5, 20.0, 7.0]])
ROWS = jnp.array(
    [
        [0.5, 20.0, 7.0],
        [1.04, 30.9, 7.0],
        [1.06, 20.0, 7.0],
        [0.5, 8.9, 7.0],
        [0.5, 20.0, 7.001],
        [-9.0, 99.0, 7.0],
    ]
)


def test_rows_beyond_five_percent_of_the_span_are_outside():
    found = TrainingRange.fit(TRAIN).outside(ROWS)
    np.testing.assert_array_equal(found, [False, False, True, True, True, True])


def test_reasons_name_the_first_input_outside():
    reasons = TrainingRange.fit(TRAIN, ("time", "heat", "gain")).reasons(ROWS)
    assert reasons[:2] == ["", ""]
    assert reasons[2] == "time = 1.06 lies outside the training range 0 to 1"
    assert reasons[3] == "heat = 8.9 lies outside the training range 10 to 30"
    assert reasons[4].startswith("gain = 7.001 lies")
    assert reasons[5].startswith("time = -9 lies")
    assert TrainingRange.fit(TRAIN).reasons(ROWS)[3].startswith("input 1 = 8.9")


def test_training_rows_and_images_are_inside():
    images = jnp.arange(24.0).reshape(2, 3, 4, 1)
    fitted = TrainingRange.fit(images)
    assert not fitted.outside(images).any()
    assert fitted.outside(images + 1.0).tolist() == [False, True]


def test_stored_and_read_back():
    fitted = TrainingRange.fit(TRAIN, ("time", "heat", "gain"))
    stored = encode(fitted)
    back = decode(json.loads(json.dumps(stored.tree)), stored.arrays)
    assert back.names == fitted.names
    np.testing.assert_array_equal(back.outside(ROWS), fitted.outside(ROWS))
