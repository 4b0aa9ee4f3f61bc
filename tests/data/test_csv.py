import numpy as np
import pytest

from weightscape.core.checks import InputError
from weightscape.data import from_csv

GOOD = "age,city,member,price\n" + "".join(
    f"{20 + i},{('Oslo', 'Bern', 'Rome')[i % 3]},{('true', 'False')[i % 2]},{1.5 * i}\n" for i in range(20)
)
LINES = GOOD.splitlines()


def _write(tmp_path, content, name="people.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def _changed(line, old, new):
    """The good table with one cell of one line (the header is line 1) changed."""
    assert old in LINES[line - 1]
    return "\n".join([*LINES[: line - 1], LINES[line - 1].replace(old, new), *LINES[line:]])


def test_columns_become_numbers(tmp_path):
    data = from_csv(_write(tmp_path, GOOD), target="price")
    assert data.inputs == ("age", "city=Bern", "city=Oslo", "city=Rome", "member")
    assert (data.name, data.task, data.target, data.classes) == ("people", "regression", "price", None)
    x = np.concatenate([data.train.x, data.test.x])
    y = np.concatenate([data.train.y, data.test.y])
    i = (x[:, 0] - 20).astype(int)
    np.testing.assert_allclose(y, 1.5 * i)
    np.testing.assert_array_equal(x[:, 1:4], np.eye(3)[np.array([1, 0, 2])[i % 3]])
    np.testing.assert_array_equal(x[:, 4], i % 2 == 0)


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_delimiters_give_the_same_data(tmp_path, delimiter):
    plain = from_csv(_write(tmp_path, GOOD), target="price")
    other = from_csv(_write(tmp_path, GOOD.replace(",", delimiter), "other.csv"), target="price")
    np.testing.assert_array_equal(plain.train.x, other.train.x)


def test_byte_order_marks_spaces_and_blank_lines_do_not_matter(tmp_path):
    messy = b"\xef\xbb\xbf" + GOOD.replace(",", " , ").replace("\n", "\r\n\r\n").encode()
    plain = from_csv(_write(tmp_path, GOOD), target="price")
    read = from_csv(_write(tmp_path, messy), target="price")
    np.testing.assert_array_equal(read.train.x, plain.train.x)
    assert read.inputs == plain.inputs


def test_the_seed_fixes_the_split(tmp_path):
    path = _write(tmp_path, GOOD)
    first, second = (from_csv(path, target="price", seed=5) for _ in range(2))
    np.testing.assert_array_equal(first.test.x, second.test.x)
    assert not np.array_equal(first.test.x, from_csv(path, target="price", seed=6).test.x)


@pytest.mark.parametrize(
    ("values", "task", "classes"),
    [
        (["yes", "no"] * 20, "classification", ("no", "yes")),
        (["True", "false"] * 20, "classification", ("false", "true")),
        (["0", "1"] * 3, "classification", ("0", "1")),
        (["10", "9.0", "2"] * 10, "classification", ("2", "9", "10")),
        (["10", "9", "2"] * 9, "regression", None),
        ([str(i) for i in range(21)] * 10, "regression", None),
        (["0.5", "1"] * 20, "regression", None),
    ],
)
def test_the_task_is_guessed(tmp_path, values, task, classes):
    rows = "".join(f"{i},{value}\n" for i, value in enumerate(values))
    data = from_csv(_write(tmp_path, "x,y\n" + rows), target="y")
    assert (data.task, data.classes) == (task, classes)
    for x, y in zip(data.test.x[:, 0], data.test.y, strict=True):
        original = values[int(x)]
        named = classes[int(y)] if classes else str(float(y))
        assert named == original.lower() or float(named) == float(original)


def test_a_given_task_wins(tmp_path):
    rows = "".join(f"{i},{label}\n" for i, label in enumerate(["1", "1.5", "7"] * 5))
    path = _write(tmp_path, "x,y\n" + rows)
    assert from_csv(path, target="y", task="classification").classes == ("1", "1.5", "7")
    assert from_csv(path, target="y", task="regression").classes is None
    mixed = "x,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate(["1", "2", "3", "4", "X"] * 5))
    data = from_csv(_write(tmp_path, mixed), target="y", task="classification")
    assert data.classes == ("1", "2", "3", "4", "X")


def test_identifiers_can_be_left_out(tmp_path):
    rows = "".join(f"id{i},{i},{i * 0.5}\n" for i in range(60))
    path = _write(tmp_path, "who,x,y\n" + rows)
    with pytest.raises(InputError) as caught:
        from_csv(path, target="y")
    assert "Column 'who'" in str(caught.value)
    assert "60 distinct texts in 60 rows, the first 'id0' in row 2" in str(caught.value)
    assert from_csv(path, target="y", ignore=("who",)).inputs == ("x",)


CELL_MISTAKES = {
    "missing number": (_changed(7, "25,", ","), "Column 'age' must have no missing values, got '' in row 7."),
    "missing text": (
        _changed(4, "Rome", "NA"),
        "Column 'city' must have no missing values, got 'NA' in row 4.",
    ),
    "missing target": (
        _changed(9, "10.5", "nan"),
        "Column 'price' must have no missing values, got 'nan' in row 9.",
    ),
    "text for a number": (_changed(5, "23", "old"), "Column 'age' must hold numbers, got 'old' in row 5."),
    "decimal comma": (_changed(3, "1.5", '"1,5"'), "Column 'price' must hold numbers, got '1,5' in row 3."),
    "infinite": (_changed(21, "39,", "inf,"), "Column 'age' must hold finite numbers, got 'inf' in row 21."),
    "too large": (
        _changed(21, "39,", "-1e39,"),
        "Column 'age' must hold finite numbers, got '-1e39' in row 21.",
    ),
    "infinite target": (
        _changed(2, "0.0", "-Infinity"),
        "Column 'price' must hold finite numbers, got '-Infinity' in row 2.",
    ),
    "long row": (_changed(6, "24", "24,24"), "Row 6 of"),
    "short row": (_changed(6, "24,", ""), "must have 4 cells, got 3."),
}


@pytest.mark.parametrize("name", CELL_MISTAKES)
def test_a_bad_cell_is_named_by_column_and_row(tmp_path, name):
    content, words = CELL_MISTAKES[name]
    with pytest.raises(InputError) as caught:
        from_csv(_write(tmp_path, content), target="price")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rows_are_lines_even_after_blank_lines_and_quoted_ones(tmp_path):
    lines = [LINES[0], "", '20,"Os\nlo",true,1.0', "", *LINES[2:6], "30,Oslo,true,", *LINES[7:]]
    with pytest.raises(InputError, match=r"Column 'price' .* got '' in row 10\."):
        from_csv(_write(tmp_path, "\n".join(lines)), target="price")


def _table(target_values):
    return "x,y\n" + "".join(f"{i},{value}\n" for i, value in enumerate(target_values))


FILE_MISTAKES = {
    "no target": (
        GOOD,
        {"target": "prize"},
        "A column must be a known name, got 'prize'. Did you mean 'price'?",
    ),
    "no ignored": (GOOD, {"target": "price", "ignore": ("town",)}, "Known: age, city, member, price."),
    "no task": (GOOD, {"target": "price", "task": "ranking"}, "`task` must be a known name, got 'ranking'."),
    "one class": (
        _table(["a"] * 9),
        {"target": "y"},
        "Column 'y' must have at least two classes, got 'a' in every row.",
    ),
    "constant": (
        _table(["1.5"] * 9),
        {"target": "y"},
        "Column 'y' must vary to be a regression target, got '1.5'",
    ),
    "only target": ("y\n1\n2\n", {"target": "y"}, "at least one input column, got 'y' alone."),
    "empty": ("", {"target": "y"}, "must have a header line, got an empty file."),
    "blank": ("\n \n", {"target": "y"}, "must have a header line, got an empty file."),
    "header only": ("x,y\n", {"target": "y"}, "must have rows below its header, got the header alone."),
    "few rows": (_table(["1.5", "2.5"]), {"target": "y"}, "must leave at least 2 rows to train on"),
    "same names": ("x,y,x\n1,2,3\n", {"target": "y"}, "must have different names, got ['x'] more than once."),
    "no name": (",y\n1,2\n", {"target": "y"}, "must have names, got none for column 1."),
    "binary": (b"\x89PNG\r\n\0\0", {"target": "y"}, "must be a CSV file, got binary content."),
    "latin": (
        "x,y\nä,1\né,2\n".encode("latin-1"),
        {"target": "y"},
        "must be text in UTF-8, got byte 0xe4 in row 2.",
    ),
    "open quote": ('x,y\n1,2\n"3,4\n', {"target": "y"}, "got unexpected end of data in row 3."),
}


@pytest.mark.parametrize("name", FILE_MISTAKES)
def test_a_bad_file_is_an_error_of_one_line(tmp_path, name):
    content, options, words = FILE_MISTAKES[name]
    with pytest.raises(InputError) as caught:
        from_csv(_write(tmp_path, content), **options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_path_must_lead_somewhere(tmp_path):
    with pytest.raises(InputError, match=r"nowhere.csv` must be a CSV file, got nothing there\."):
        from_csv(tmp_path / "nowhere.csv", target="y")
    with pytest.raises(InputError, match=r"must be a CSV file, got a directory\."):
        from_csv(tmp_path, target="y")
