"""All readers of accuracies, each fitted with several seeds; what is done is stored and not done again."""

import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import jax
import numpy as np
from experiments.zoo import settings
from experiments.zoo.baselines import boosted_trees, flat_mlp
from experiments.zoo.fitting import Predicted, Reading, fit, score
from experiments.zoo.store import Parts

from weightscape import metanet, symmetry
from weightscape.core.files import read_json, write_json

Fitter = Callable[[int, Parts, Reading], Predicted]


def fitters(kind: str) -> dict[str, Fitter]:
    """The readers by name: two that know no symmetry, ours, ours with less symmetry, ours with probes."""
    less = {"mlp": ("without signs", symmetry.Symmetry.without_signs),
            "convnet": ("without scaling", symmetry.Symmetry.without_scaling)}  # fmt: skip
    name, forget = less[kind]
    return {
        "trees on statistics": boosted_trees,
        "MLP on all weights": flat_mlp,
        "Reader": partial(reader, kind),
        f"Reader {name}": partial(reader, kind, change=forget),
        "Reader with probes": partial(reader, kind, num_probes=8),
    }


def reader(
    kind: str,
    seed: int,
    parts: Parts,
    reading: Reading,
    *,
    change: Callable[[symmetry.Symmetry], symmetry.Symmetry] = lambda found: found,
    num_probes: int = 0,
) -> Predicted:
    """`metanet.Reader` with the symmetry of the network, or with what `change` leaves of it."""
    key_init, key_train = jax.random.split(jax.random.key(seed))
    network, x = settings.NETWORKS[kind], settings.images(kind, settings.SMALL).x_train
    params = jax.tree.map(lambda leaf: leaf[0], parts.train.params)
    found = change(symmetry.discover(network, params, x[:8]))
    model = metanet.Reader(
        key_init,
        found,
        params,
        num_outputs=1,
        sizes=reading.sizes,
        scaling=metanet.ChannelScaling.of(found, parts.train.params),
        probes=metanet.Probes(network, x, num_probes) if num_probes else None,
    )
    return fit(key_train, model, parts, reading)


def read_all(folder: Path, kind: str, parts: Parts, reading: Reading, names: Iterable[str] = ()) -> dict:
    """Scores of all readers, or of those named, for every seed; kept in a file of `folder`."""
    path = folder / f"{kind}_readings.json"
    scores = read_json(path) if path.is_file() else {}
    for name, fitter in fitters(kind).items():
        for seed in range(reading.num_seeds):
            if str(seed) in scores.get(name, {}) or (names and name not in names):
                continue
            began = time.perf_counter()
            predicted = fitter(seed, parts, reading)
            found = {
                "validation": score(predicted.validation, parts.validation),
                "test": score(predicted.test, parts.test),
            }
            found["seconds"] = round(time.perf_counter() - began, 1)
            scores.setdefault(name, {})[str(seed)] = found
            write_json(path, scores)
            print(kind, name, seed, found, flush=True)
    return scores


def table(scores: dict) -> list[str]:
    """Mean and standard error over seeds, as Markdown."""
    lines = ["| reader | seeds | τ | R² | τ, validation | R², validation | s a fit |", "|---|---|---|---|---|---|---|"]
    for name, by_seed in scores.items():
        values = np.array([[*each["test"], *each["validation"]] for each in by_seed.values()])
        errors = values.std(0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.full(4, np.nan)
        cells = [f"{mean:.4f} ± {error:.4f}" for mean, error in zip(values.mean(0), errors, strict=True)]
        seconds = np.mean([each["seconds"] for each in by_seed.values()])
        lines.append(f"| {name} | {len(values)} | " + " | ".join(cells) + f" | {seconds:.0f} |")
    return lines
