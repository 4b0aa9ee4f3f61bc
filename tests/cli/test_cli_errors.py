"""Every mistake ends in one line and exit code 2, and nothing is written."""

import json
import shutil

import pytest
from tests.cli.tables import write_csv

from weightscape.cli.errors import Stopped, one_line
from weightscape.cli.main import run_command


def complaint(capsys, arguments: list[str], exit_code: int = 2) -> str:
    """The one line that the command says on its way out."""
    capsys.readouterr()
    assert run_command(arguments) == exit_code
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("weightscape: "), printed.err
    return lines[0]


@pytest.fixture
def table(tmp_path):
    return str(write_csv(tmp_path / "t.csv", ["a", "b", "y"], [[i, i % 3, 2.5 * i] for i in range(30)]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Columns: a, b, y"),
        (["--target", "z"], "A column must be a known name, got 'z'"),
        (["--target", "y", "--method", "magic"], "Known: ensemble, flow, hmc, laplace, layerwisevi, mala, map"),
        (["--target", "y", "--activation", "tan"], "Did you mean 'tanh'?"),
        (["--target", "y", "--hidden", "8,x"], "`--hidden` must be whole numbers, got '8,x'"),
        (["--target", "y", "--noise", "loud"], "`--noise` must be a number, got 'loud'"),
        (["--target", "y", "--noise", "-1"], "`--noise` must be positive"),
        (["--target", "y", "--noise", "1", "--heteroscedastic"], "must stand alone"),
        (["--target", "y", "--method", "map", "--draws", "9"], "`--draws` must suit the method, got MAP"),
        (["--target", "y", "--minutes", "-1"], "`--minutes` must be positive"),
        (["--target", "y", "--test-fraction", "1.5"], "between 0 and 1"),
        (["--target", "y", "--prior-scale", "0"], "`scale` of Normal must be positive"),
        (["--target", "y", "--task", "magic"], "`task` must be a known name"),
        (["--target", "y", "--chains", "0"], "--chains"),
        (["--target", "y", "--colour", "red"], "--colour"),
        (["--target", "y", "--ignore", "q"], "got 'q'"),
    ],
)
def test_wrong_options_of_fit(capsys, table, tmp_path, options, message):
    out = tmp_path / "run"
    assert message in complaint(capsys, ["fit", table, *options, "--out", str(out)])
    assert not out.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "an empty file"),
        ("a,y\n", "the header alone"),
        ("a,y\n1,2\n,3\n4,5\n", "'' in row 3"),
        ("a,y\n1,2\n2\n", "Row 3"),
        ("a,y\n1,2\n2,NaN\n3,4\n", "Column 'y' must have no missing values"),
        ("a,y\n1,7\n2,7\n3,7\n", "Column 'y' must"),
    ],
)
def test_wrong_files(capsys, tmp_path, content, message):
    (tmp_path / "t.csv").write_text(content)
    assert message in complaint(capsys, ["fit", str(tmp_path / "t.csv"), "--target", "y", "--out", str(tmp_path / "r")])


def test_wrong_sources(capsys, tmp_path):
    assert "must be a CSV file, got nothing there" in complaint(capsys, ["fit", f"{tmp_path}/no.csv", "--target", "y"])
    unknown = complaint(capsys, ["fit", "irish"])
    assert "Did you mean 'iris'?" in unknown and "breast_cancer" in unknown
    assert "`--target` must go with a CSV file" in complaint(capsys, ["fit", "iris", "--target", "class"])
    assert "Noise options must go with a regression" in complaint(capsys, ["fit", "iris", "--noise", "1"])
    assert "Did you mean 'iris'?" in complaint(capsys, ["data", "irish"])


def test_an_output_that_is_taken(capsys, table, tmp_path, regression):
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        assert "must be a folder, got a file" in complaint(capsys, ["fit", table, "--target", "y", "--out", str(out)])
    assert (tmp_path / "file").read_text() == "mine"
    taken = ["fit", table, "--target", "y", "--out", str(regression.folder)]
    assert "Pass `--resume` to go on with it, `--overwrite` to replace it" in complaint(capsys, taken)
    assert "must not hold a run already" in complaint(capsys, ["demo", "--out", str(regression.folder)])


def test_new_rows_that_do_not_fit(capsys, tmp_path, regression):
    def predict(header, rows):
        table = write_csv(tmp_path / "new.csv", header, rows)
        return complaint(capsys, ["predict", str(regression.folder), str(table)])

    assert "A column must be a known name, got 'colour'" in predict(["a"], [[1.0]])
    assert "Column 'colour' must hold values known from training, got 'green' in row 3" in predict(
        ["a", "colour"], [[1.0, "red"], [1.0, "green"]]
    )
    assert "Column 'a' must hold numbers, got 'one' in row 2" in predict(["a", "colour"], [["one", "red"]])
    assert not (tmp_path / "pred.csv").exists()
    same = ["predict", str(regression.folder), str(regression.table), "--out", str(regression.table)]
    assert "must not be the file of new rows" in complaint(capsys, same)
    folder = ["predict", str(regression.folder), str(regression.table), "--out", str(tmp_path)]
    assert "must be a file, got a folder" in complaint(capsys, folder)


def _break_json(folder, change):
    content = json.loads((folder / "run.json").read_text())
    change(content)
    (folder / "run.json").write_text(json.dumps(content))


DAMAGE = {
    "no run.json": (lambda folder: (folder / "run.json").unlink(), "must hold run.json"),
    "truncated run.json": (lambda folder: (folder / "run.json").write_text('{"format": "weigh'), "must hold JSON"),
    "foreign run.json": (lambda folder: (folder / "run.json").write_text('{"a": 1}'), "another format"),
    "newer run": (lambda folder: _break_json(folder, lambda c: c.update(version=99)), "Upgrade weightscape"),
    "a field less": (lambda folder: _break_json(folder, lambda c: c["run"]["fields"].pop("seed")), "damaged"),
    "another object": (lambda folder: _break_json(folder, lambda c: c.update(run=3)), "damaged"),
    "no draws": (lambda folder: (folder / "draws.json").unlink(), "must hold draws.json"),
    "truncated draws.json": (lambda folder: (folder / "draws.json").write_text("{"), "must hold JSON"),
    "no arrays": (lambda folder: (folder / "run.safetensors").unlink(), "run.safetensors"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_run(capsys, tmp_path, regression, name):
    damage, message = DAMAGE[name]
    folder = tmp_path / "run"
    shutil.copytree(regression.folder, folder)
    damage(folder)
    assert message in complaint(capsys, ["predict", str(folder), str(regression.table), "--out", f"{tmp_path}/p.csv"])
    assert not (tmp_path / "p.csv").exists()


def test_a_truncated_chunk_of_draws(capsys, tmp_path, regression):
    shutil.copytree(regression.folder, tmp_path / "run")
    chunk = next((tmp_path / "run").glob("draws-*.safetensors"))
    chunk.write_bytes(chunk.read_bytes()[:-10])
    assert "whole safetensors file" in complaint(capsys, ["report", str(tmp_path / "run")])


def test_a_run_that_is_not_there(capsys, tmp_path):
    assert "must be the folder of a run" in complaint(capsys, ["report", str(tmp_path / "none")])


def test_a_full_disk_is_one_line(capsys, monkeypatch, tmp_path):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    message = complaint(capsys, ["data", "iris", "--out", str(tmp_path), "--quiet"])
    assert "No space left on device" in message and list(tmp_path.iterdir()) == []


def test_an_interruption_says_what_is_kept(capsys, monkeypatch, tmp_path):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("weightscape.inference.MAP.run", interrupt)
    arguments = ["fit", "line", "--method", "map", "--out", str(tmp_path / "run"), "--quiet"]
    assert "Stopped before the first draws" in complaint(capsys, arguments, exit_code=130)
    assert (tmp_path / "run" / "run.json").is_file()
    monkeypatch.setattr("weightscape.cli.data.load_source", interrupt)
    assert "Stopped." in complaint(capsys, ["data", "iris"], exit_code=130)


def test_messages_of_several_lines_become_one():
    assert one_line(OSError("first\n  second")) == "first second"
    assert one_line(KeyboardInterrupt()) == "KeyboardInterrupt"


def test_our_own_faults_show_their_trace(monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("weightscape.cli.data.load_source", fail)
    with pytest.raises(ZeroDivisionError):
        run_command(["data", "iris"])
    assert not issubclass(Stopped, (ValueError, OSError))
