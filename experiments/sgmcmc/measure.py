"""What a row of `sgmcmc_table` says of a method, and how well its reference is known."""

from typing import Any, NamedTuple

import numpy as np
from experiments.sgmcmc.settings import Problem

import weightscape as ws
from weightscape.inference.method import Method

_MEMORY = 4 * 2**30
_NUM_PROBES = 64


class Told(NamedTuple):
    """Probabilities at the test inputs and at the foreign ones."""

    test: ws.Predictive
    foreign: ws.Predictive


def start(method: Method) -> ws.FromPrior | None:
    """Chains start at the prior, what is trained at the network's own weights."""
    return ws.FromPrior() if isinstance(method, ws.HMC | ws.SGLD | ws.SGHMC) else None


def told(draws: ws.Draws, problem: Problem) -> Told:
    """What the draws, averaged, say."""
    return Told(*(ws.predict(draws, x, memory=_MEMORY) for x in (problem.test.x, problem.foreign)))


def distances(found: Told, reference: Told) -> dict[str, float]:
    """Agreement and total variation, on both kinds of inputs."""
    row: dict[str, float] = {}
    for name in Told._fields:
        pair = getattr(found, name), getattr(reference, name)
        row |= {f"agreement_{name}": ws.agreement(*pair), f"tv_{name}": ws.total_variation(*pair)}
    return row


def scores(found: Told, problem: Problem) -> dict[str, float]:
    """Accuracy and negative log likelihood of averaged probabilities."""
    values = ws.scores(found.test, problem.test.y)
    return {name: float(values[name]) for name in ("accuracy", "nll")}


def settled(draws: ws.Draws, problem: Problem) -> dict[str, float]:
    """Function-space R̂ and effective sample size, and what one half of the chains says about the other."""
    half = draws.num_chains // 2
    row = distances(told(draws[:half], problem), told(draws[half:], problem))
    for name, x in (("test", problem.test.x), ("foreign", problem.foreign)):
        found = ws.diagnose(draws, np.asarray(x)[:_NUM_PROBES])
        row |= {f"rhat_{name}": found.worst_rhat, f"rhat_median_{name}": float(np.nanmedian(found.functions.rhat))}
        row |= {f"ess_{name}": found.least_bulk_ess}
    return row | {"acceptance": float(np.mean(draws.info["acceptance"])), **_spread(draws.info["step_size"])}


def num_epochs(method: Method, num_draws: int, problem: Problem) -> float:
    """How often all chains, or networks, have seen all points."""
    num_points = problem.posterior.num_points
    match method:
        case ws.HMC():
            return method.num_chains * (method.num_warmup + num_draws * method.thin) * method.num_leapfrog
        case ws.SGLD() | ws.SGHMC():
            gaps = method.step_size.gaps(method.thin)
            steps = method.num_chains * (method.num_warmup + num_draws * sum(gaps) / len(gaps))
        case ws.DeepEnsemble():
            steps = method.num_members * method.num_steps
        case ws.MAP() | ws.MeanFieldVI():
            steps = method.num_steps
        case _:
            raise TypeError(f"The gradients of {type(method).__name__} are not counted. Add a case to num_epochs.")
    return steps * (method.batch_size or num_points) / num_points


def _spread(values: Any) -> dict[str, float]:
    return {"step_size": float(np.mean(values)), "step_size_spread": float(np.std(values))}
