"""Training of readers, and how often they are right about networks they have not seen."""

import json
import time
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from experiments.implicit.readers import Reader, Recipe, readers
from experiments.implicit.settings import Settings
from experiments.implicit.store import require_same
from jaxtyping import Array, Float, Int

from weightscape import metanet
from weightscape.core import PRNGKey, Scalar, Tree, tree
from weightscape.core.files import write_json
from weightscape.symmetry import Symmetry

_NUM_STANDARD = 2_000
"""Networks that means and deviations are taken of."""

_EVALUATED_AT_ONCE = 500


class Examples(NamedTuple):
    """Networks with one leading axis, and their classes."""

    params: Tree
    classes: Int[Array, " network"]


class Run(NamedTuple):
    """One trained reader: accuracies in %, seconds of training, sizes."""

    name: str
    seed: int
    test: float
    validation: float
    train: float
    seconds: float
    num_parameters: int
    megaflops: float | None


class NoisyCrossEntropy(eqx.Module):
    """−log p(class | θ + ε), the mean over a batch; ε ~ N(0, σ²).

    - `spreads`: σ of each leaf.  `moved_by`: a symmetry, a random element of which moves each θ before; None for none.
    """

    spreads: Tree
    moved_by: Symmetry | None

    def __call__(self, model: Reader, key: PRNGKey, batch: Examples) -> Scalar:
        key_noise, key_move = jax.random.split(key)
        params = batch.params
        if (group := self.moved_by) is not None:
            keys = jax.random.split(key_move, len(batch.classes))
            params = jax.vmap(lambda key, one: group.apply(one, group.random(key)))(keys, params)
        noise = tree.normal_like(key_noise, params)
        noisy = jax.tree.map(lambda leaf, spread, e: leaf + spread * e, params, self.spreads, noise)
        scores = jax.vmap(model)(noisy)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(scores, batch.classes))


def read_all(key: PRNGKey, examples: Examples, settings: Settings, folder: Path) -> list[Run]:
    """Every reader, trained from every seed; runs that are there already are not repeated."""
    require_same(folder / "runs" / "made_with.txt", f"{settings.reading}, {len(examples.classes)} networks")
    test, validation, train = _split(examples, settings)
    made = readers(_rows(train, 0, _NUM_STANDARD).params, settings)
    runs = []
    for seed in range(settings.reading.num_seeds):
        for number, (name, recipe) in enumerate(made.items()):
            path = folder / "runs" / f"reader{number}_seed{seed}.json"
            if not path.exists():
                key_run = jax.random.fold_in(jax.random.fold_in(key, seed), number)
                write_json(path, _run(key_run, recipe, (test, validation, train), settings, name, seed)._asdict())
            runs.append(Run(**json.loads(path.read_text(encoding="utf-8"))))
            print(runs[-1], flush=True)
    return runs


def table(runs: list[Run]) -> list[str]:
    """Mean and standard error over seeds, as Markdown."""
    lines = ["| reader | seeds | test % | validation % | training % | parameters | MFLOP a network | training s |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for name in dict.fromkeys(run.name for run in runs):
        own = [run for run in runs if run.name == name]
        shown = [_mean([getattr(run, field) for run in own]) for field in ("test", "validation", "train")]
        seconds = np.median([run.seconds for run in own])
        operations = "–" if own[0].megaflops is None else f"{own[0].megaflops:.1f}"
        sizes = [f"{own[0].num_parameters:,}", operations, f"{seconds:.0f}"]
        lines.append("| " + " | ".join([name, str(len(own)), *shown, *sizes]) + " |")
    return lines


def _run(key: PRNGKey, recipe: Recipe, parts: tuple[Examples, ...], settings: Settings, name: str, seed: int) -> Run:
    key_make, key_train = jax.random.split(key)
    model, (test, validation, train) = recipe.make(key_make), parts
    cost = metanet.cost(model, jax.tree.map(lambda leaf: leaf[0], test.params))
    spreads = jax.tree.map(lambda leaf: settings.reading.noise * jnp.std(leaf[:_NUM_STANDARD]), train.params)
    began = time.perf_counter()
    trained = metanet.train(
        key_train,
        model,
        NoisyCrossEntropy(spreads, recipe.moved_by),
        train,
        num_steps=settings.reading.num_steps,
        batch_size=settings.reading.batch_size,
    ).model
    seconds = time.perf_counter() - began
    parts = test, validation, _rows(train, 0, len(test.classes))
    of_test, of_validation, of_train = (accuracy(trained, part) for part in parts)
    megaflops = cost.num_operations / 1e6 if np.isfinite(cost.num_operations) else None
    return Run(name, seed, of_test, of_validation, of_train, seconds, cost.num_parameters, megaflops)


def accuracy(model: Reader, examples: Examples) -> float:
    """How many of a hundred networks are classified rightly."""
    return 100 * float(np.mean(np.asarray(_scores(model, examples.params).argmax(axis=1) == examples.classes)))


@eqx.filter_jit
def _scores(model: Reader, params: Tree) -> Float[Array, "network class"]:
    return jax.lax.map(model, params, batch_size=_EVALUATED_AT_ONCE)


def _split(examples: Examples, settings: Settings) -> tuple[Examples, Examples, Examples]:
    ends = settings.num_test, settings.num_test + settings.num_validation
    return _rows(examples, 0, ends[0]), _rows(examples, *ends), _rows(examples, ends[1], len(examples.classes))


def _rows(examples: Examples, first: int, end: int) -> Examples:
    return jax.tree.map(lambda leaf: leaf[first:end], examples)


def _mean(values: list[float]) -> str:
    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else None
    return f"{np.mean(values):.2f}" + ("" if error is None else f" ± {error:.2f}")
