import json

import numpy as np
import pandas as pd
import pytest

from weightscape.core.checks import InputError
from weightscape.core.config import decode, encode
from weightscape.data import from_csv

FRAME = pd.DataFrame(
    {
        "size": [0.1 * i for i in range(12)],
        "colour": ["red", "blue", "green"] * 4,
        "new": [True, False] * 6,
        "kind": ["b", "a", "a"] * 4,
    }
)


@pytest.fixture
def data(tmp_path):
    FRAME.to_csv(tmp_path / "things.csv", index=False)
    return from_csv(tmp_path / "things.csv", target="kind")


def test_new_rows_are_read_as_the_training_rows_were(data, tmp_path):
    x = data.schema.encode(tmp_path / "things.csv")
    together = np.concatenate([data.train.x, data.test.x])
    np.testing.assert_allclose(np.sort(x, axis=0), np.sort(together, axis=0), rtol=1e-6)
    np.testing.assert_array_equal(data.schema.encode(FRAME), x)
    np.testing.assert_array_equal(data.schema.encode_target(FRAME), [1, 0, 0] * 4)
    assert data.schema.input_names == data.inputs == ("size", "colour=blue", "colour=green", "colour=red", "new")


def test_order_extra_columns_and_the_target_do_not_matter(data):
    shuffled = FRAME[["new", "colour", "size"]].assign(extra="anything")
    np.testing.assert_array_equal(data.schema.encode(shuffled), data.schema.encode(FRAME))


def test_stored_and_read_back(data):
    stored = encode(data.schema)
    back = decode(json.loads(json.dumps(stored.tree)), stored.arrays)
    assert back == data.schema
    assert hash(back) == hash(data.schema)
    np.testing.assert_array_equal(back.encode(FRAME), data.schema.encode(FRAME))


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (FRAME.drop(columns="size"), "A column must be a known name, got 'size'."),
        (
            FRAME.replace("green", "pink"),
            "must hold values known from training, got 'pink' in row 2. Known: blue,",
        ),
        (FRAME.assign(size="big"), "Column 'size' must hold numbers, got 'big' in row 0."),
        (
            FRAME.assign(size=FRAME["size"].where(FRAME.index != 3)),
            "'size' must have no missing values, got '' in row 3.",
        ),
        (
            FRAME.assign(new="maybe"),
            "Column 'new' must hold values known from training, got 'maybe' in row 0.",
        ),
        (FRAME.iloc[:0], "A frame must have rows, got none."),
    ],
)
def test_rows_that_do_not_fit_are_named(data, frame, words):
    with pytest.raises(InputError) as caught:
        data.schema.encode(frame)
    assert words in str(caught.value)


def test_files_are_named_by_line(data, tmp_path):
    (tmp_path / "new.csv").write_text("size,colour,new\n1,red,true\n2,mauve,false\n")
    with pytest.raises(InputError, match=r"'colour' .* got 'mauve' in row 3\."):
        data.schema.encode(tmp_path / "new.csv")


def test_unknown_classes_are_named(data):
    with pytest.raises(InputError, match=r"'kind' must hold classes known from training, got 'c' in row 0\."):
        data.schema.encode_target(FRAME.replace("b", "c"))


def test_numbered_classes_may_be_spelled_differently(tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("x,y\n" + "".join(f"{i},{i % 2 + 1}\n" for i in range(10)))
    schema = from_csv(path, target="y").schema
    assert schema is not None
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0], "y": [1.0, 2.0, 1.0]})
    np.testing.assert_array_equal(schema.encode_target(frame), [0, 1, 0])
