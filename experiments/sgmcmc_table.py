"""Stochastic-gradient MCMC, an ensemble and mean-field VI against HMC: the table of Izmailov et al. on MNIST.

    WEIGHTSCAPE_DATA=<folder> python -m experiments.sgmcmc_table FOLDER [--methods "NAME;NAME"] [--seconds N] [--tiny]

<folder> holds mnist.npz and notmnist_10k.npz. The reference is sampled first, for at most `--seconds` where they are
given, then every method is run. What was stopped goes on, a reference that was out of time too. Each row is printed and
kept at once in FOLDER/results.json, and all rows as a table in FOLDER/table.md. `--tiny` takes digits and a few draws:
that shows that the script runs, and its numbers mean nothing.

Reference: Izmailov, Vikram, Hoffman & Wilson (2021), What are Bayesian neural network posteriors really like?, table 1.
"""

import argparse
import math
from pathlib import Path

import jax
from experiments.sgmcmc import measure
from experiments.sgmcmc.rows import REFERENCE, keep
from experiments.sgmcmc.settings import FULL, TINY, Problem, Settings, methods, problem

import weightscape as ws
from weightscape.core import Deadline, default_progress
from weightscape.core.checks import require_known
from weightscape.inference.as_draws import as_draws


def main(folder: Path, settings: Settings, chosen: list[str], seconds: float = math.inf) -> None:
    given, known = problem(settings), methods(settings)
    for name in chosen:
        require_known("`--methods`", name, known)
    reference = sample_reference(folder, settings, given, seconds)
    for name in chosen:
        method, store = known[name], folder / "runs" / name.replace(",", "").replace(" ", "-")
        result = method.run(jax.random.key(1), given.posterior, init=measure.start(method), store=store, resume=True)
        draws = as_draws(jax.random.key(2), result, settings.num_chains * settings.num_draws)
        found = measure.told(draws, given)
        row = measure.scores(found, given) | measure.distances(found, reference)
        cost = {"networks": len(draws), "epochs": measure.num_epochs(method, draws.num_draws, given)}
        keep(folder, {"method": name, **row, **cost, "seconds": result.facts["seconds"]})


def sample_reference(folder: Path, settings: Settings, given: Problem, seconds: float) -> measure.Told:
    """What HMC says, which every row is measured against; its own row tells how well that is known."""
    method, progress = settings.reference, Deadline(seconds, default_progress())
    around = {"init": measure.start(method), "store": folder / "runs" / "reference", "resume": True}
    draws = method.run(jax.random.key(0), given.posterior, **around, progress=progress)
    assert isinstance(draws, ws.Draws)
    print(draws.health, flush=True)
    found = measure.told(draws, given)
    row = measure.scores(found, given) | measure.settled(draws, given)
    cost = {"networks": len(draws), "epochs": measure.num_epochs(method, draws.num_draws, given)}
    keep(folder, {"method": REFERENCE, **row, **cost, "seconds": draws.facts["seconds"]})
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--methods", help="names of rows, separated by semicolons")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--tiny", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    jax.config.update("jax_default_matmul_precision", "highest")
    asked = _arguments()
    settings = TINY if asked.tiny else FULL
    names = list(methods(settings)) if asked.methods is None else asked.methods.split(";")
    main(asked.folder, settings, names, asked.seconds)
