"""The run folder: one directory that holds all of a run.

    run.json, run.safetensors      what was asked and how to read new rows; written before sampling
    data.safetensors               the rows, in original units; left out where they are large
    draws.json, draws-*            the draws, as they are made
    approximation.json, …          the density that they came from, where the method has one
    stages/                        runs that the method made on its way, such as its search for a mode
    result.json                    scores, times, health
    measured.json                  which run this is and how long it took, where it is part of a comparison
    report.html, figures/          to look at

Every file is whole or absent, so a run that is killed leaves a folder that works, or one without draws.
"""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from weightscape.core import InputError, decode, encode, registered
from weightscape.core.checks import require
from weightscape.core.files import map_arrays, read_json, write_arrays, write_json
from weightscape.data import Batch, Dataset, Scaling, TableSchema, TrainingRange
from weightscape.draws import Draws
from weightscape.inference.approximation_run import STAGES

RUN = "run.json"
RUN_ARRAYS = "run.safetensors"
DATA = "data.safetensors"
RESULT = "result.json"
MEASURED = "measured.json"
FIGURES = "figures"
FORMAT = "weightscape.run"
VERSION = 1

_MOST_BYTES = 64 * 2**20
_DRAWS = (
    "draws.json",
    "approximation.json",
    "draws-*.safetensors",
    "state-*.safetensors",
    "header-*.safetensors",
    "approximation-*.safetensors",
)
_MADE_BY_RUNS = (MEASURED, RESULT, "report.html", RUN, RUN_ARRAYS, DATA)
_REMEDY = "Pass a folder that `weightscape fit` wrote."


@registered("cli.Run")
@dataclasses.dataclass(frozen=True)
class Run:
    """What is needed to use a run later.

    Arguments:
        name, source: the data set's name, and the file or catalogue it came from.
        task, target, inputs, classes, schema: as in Dataset.
        training_range: where the training inputs were.
        seed: of the split and of the method.
        settings: what was asked, in words.

    """

    name: str
    source: str
    task: str
    target: str
    inputs: tuple[str, ...]
    classes: tuple[str, ...] | None
    schema: TableSchema | None
    training_range: TrainingRange
    seed: int
    settings: dict[str, str]


def require_free(folder: Path, *, overwrite: bool, resume: bool = False) -> bool:
    """Raise where a run must not be written; whether there is one to go on with."""
    remedy = "Choose another folder with `--out`."
    for place in (folder, *folder.parents):
        require(not place.is_file(), f"`{folder}` must be a folder", f"a file at `{place}`", remedy)
    require(not (overwrite and resume), "`--overwrite` and `--resume` must not both be given", "both", "Leave one out.")
    taken = (folder / RUN).exists()
    remedy = "Pass `--resume` to go on with it, `--overwrite` to replace it, or another `--out`."
    require(overwrite or resume or not taken, f"`{folder}` must not hold a run already", RUN, remedy)
    return taken and resume


def clear(folder: Path) -> None:
    """Remove an earlier run, its draws first: what is left in between is never a mix of two runs."""
    for pattern in _DRAWS:
        for file in folder.glob(pattern):
            file.unlink()
    for name in _MADE_BY_RUNS:
        (folder / name).unlink(missing_ok=True)
    for inner in (FIGURES, STAGES):
        if (folder / inner).is_dir():
            shutil.rmtree(folder / inner)


def write_run(folder: Path, run: Run, dataset: Dataset) -> None:
    """Write everything but the draws and what comes after them; `run.json` is the last."""
    write_arrays(folder / DATA, _rows(dataset))
    encoded = encode(run)
    write_arrays(folder / RUN_ARRAYS, encoded.arrays)
    write_json(folder / RUN, {"format": FORMAT, "version": VERSION, "run": encoded.tree})


def read_run(folder: Path) -> Run:
    """What `write_run` wrote about the run."""
    require(folder.is_dir(), f"`{folder}` must be the folder of a run", "nothing there", _REMEDY)
    require((folder / RUN).is_file(), f"`{folder}` must hold {RUN}", "no such file", _REMEDY)
    content = read_json(folder / RUN)
    ours = isinstance(content, dict) and content.get("format") == FORMAT
    require(ours, f"`{folder / RUN}` must describe a run of weightscape", "another format", _REMEDY)
    version = content.get("version")
    asked, remedy = f"`{folder}` must be of version {VERSION} or older", "Upgrade weightscape to read it."
    require(isinstance(version, int) and version <= VERSION, asked, f"version {version}", remedy)
    try:
        run = decode(content["run"], map_arrays(folder / RUN_ARRAYS))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _damaged(folder / RUN, error) from error
    if not isinstance(run, Run):
        raise _damaged(folder / RUN, run)
    return run


def read_draws(folder: Path) -> Draws:
    """The draws of a run."""
    try:
        return Draws.load(folder)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise _damaged(folder / "draws.json", error) from error


def read_dataset(folder: Path, run: Run, scaling: Scaling | None) -> Dataset:
    """The rows of a run as a data set; where the training rows were too many to keep, the test rows stand for both."""
    arrays = map_arrays(folder / DATA)
    remedy = "The rows were too many to keep; fit again with fewer."
    require("x_test" in arrays, f"`{folder / DATA}` must hold the test rows", "none", remedy)
    test = Batch(arrays["x_test"], arrays["y_test"], scaling)
    train = Batch(arrays["x_train"], arrays["y_train"], scaling) if "x_train" in arrays else test
    return Dataset(run.name, run.task, train, test, run.inputs, run.target, run.classes, run.schema)


def _rows(dataset: Dataset) -> dict[str, np.ndarray]:
    """The test rows, then the training rows, as far as they fit."""
    kept: dict[str, np.ndarray] = {}
    for name, batch in (("test", dataset.test), ("train", dataset.train)):
        more = {f"x_{name}": np.asarray(batch.x), f"y_{name}": np.asarray(batch.y)}
        if sum(array.nbytes for array in (kept | more).values()) <= _MOST_BYTES:
            kept |= more
    return kept


def _damaged(path: Path, came: Any) -> InputError:
    return InputError(f"`{path}` must be whole, got {came}. The folder is damaged; restore it or fit again.")
