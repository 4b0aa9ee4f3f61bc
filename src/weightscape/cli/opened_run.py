"""A run as commands on weights see it: its draws, its rows, and its posterior made again from them."""

import dataclasses
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from weightscape.cli.errors import one_line
from weightscape.cli.run_folder import DATA, Run, read_dataset, read_draws, read_run
from weightscape.cli.source import Request, load_source
from weightscape.core import PRNGKey
from weightscape.core.checks import InputError, InputTypeError, require
from weightscape.core.files import map_arrays, read_json
from weightscape.data import Batch, Dataset
from weightscape.draws import Draws
from weightscape.draws.store import MANIFEST as DRAWS_MANIFEST
from weightscape.inference import load_approximation
from weightscape.inference.approximation_files import MANIFEST
from weightscape.inference.method import data_digest
from weightscape.posterior import Model, Posterior


class OpenedRun(NamedTuple):
    """What a run folder holds.

    - `has_training_rows`: False where they were too many to keep; the test rows then stand for both.
    """

    folder: Path
    record: Run
    draws: Draws
    dataset: Dataset
    has_training_rows: bool

    def posterior(self) -> Posterior:
        """The posterior of the draws' model given the training rows, or what stands for them."""
        model = self.draws.model
        return Model(model.network, model.likelihood, model.prior).condition(self.dataset.train)

    def batches(self) -> dict[str, Batch]:
        """The rows by the name of their part."""
        kept = {"training rows": self.dataset.train} if self.has_training_rows else {}
        return {**kept, "test rows": self.dataset.test}

    def inputs(self, most: int) -> Float[Array, "point ..."]:
        """The first `most` rows of training as the network sees them."""
        x, scaling = jnp.asarray(self.dataset.train.x[:most]), self.draws.scaling
        return x if scaling is None else scaling.inputs(x)


def open_run(folder: Path) -> OpenedRun:
    """The run in a folder, with the draws that it made."""
    record = read_run(folder)
    draws = read_draws(folder)
    dataset = read_dataset(folder, record, draws.scaling)
    return OpenedRun(folder, record, draws, dataset, "x_train" in map_arrays(folder / DATA))


def with_training_rows(opened: OpenedRun, remedy: str) -> OpenedRun:
    """The run with its training rows, read again from where they came from if they were too many to keep.

    Raises, with the remedy, where they are not there any more, or are not the very rows that the draws were made from.
    """
    if opened.has_training_rows:
        return opened
    asked, source = f"`{opened.folder}` must hold its training rows, or know where they are", opened.record.source
    try:
        found = _read_again(opened)
    except (InputError, InputTypeError, OSError) as error:
        raise InputError(f"{asked}, got none ({one_line(error).rstrip('.')}). {remedy}") from error
    posterior = found.posterior()
    digest = data_digest((*posterior.rows(), posterior.likelihood_power, posterior.prior_power))
    made_from = read_json(opened.folder / DRAWS_MANIFEST).get("identity", {}).get("data")
    require(digest == made_from, asked, f"none, and `{source}` gives other rows", remedy)
    return found


def _read_again(opened: OpenedRun) -> OpenedRun:
    record = opened.record
    target = None if record.schema is None else record.target  # named data sets have no schema, and know their own
    train = load_source(Request(record.source, target, None if target is None else record.task, seed=record.seed)).train
    came, wanted = (batch.x.shape[1:] for batch in (train, opened.dataset.test))
    require(came == wanted, f"Rows of `{record.source}` must have the shape {wanted}", came, "Restore it.")
    dataset = dataclasses.replace(opened.dataset, train=Batch(train.x, train.y, opened.draws.scaling))
    return opened._replace(dataset=dataset, has_training_rows=True)


def with_fresh_draws(key: PRNGKey, opened: OpenedRun, num_draws: int | None) -> OpenedRun:
    """The run with `num_draws` new draws from its density in place of those it made; None leaves it as it is."""
    if num_draws is None:
        return opened
    came = f"one of {opened.draws.facts.get('method', 'another method')}"
    remedy = "Leave it out: the draws of the run are taken."
    has_density = (opened.folder / MANIFEST).is_file()
    require(has_density, "A run that `--draws` are taken from must have a density", came, remedy)
    target = opened.posterior() if opened.has_training_rows else None
    return opened._replace(draws=load_approximation(opened.folder, target).sample(key, num_draws))
