"""Networks that a flow over a population draws, judged by those of runs that it has not seen.

    d(θ) = min_{θ' in train} ‖φ(θ) − φ(θ')‖,      ratio and Z_U as in `evaluate.memorisation`

Networks that overflow are counted and left out: one of them would make every mean infinite.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from weightscape.cli.finish import plain_scores
from weightscape.cli.flow_given import Answer
from weightscape.cli.opened_run import OpenedRun
from weightscape.core.checks import require
from weightscape.core.types import Tree
from weightscape.draws import Draws, Header
from weightscape.draws.function_space import evaluate_functions
from weightscape.evaluate import (
    Memorisation,
    audit,
    copy_candidates,
    function_features,
    matched_distances,
    memorisation,
    scores,
    weight_features,
)
from weightscape.evaluate.network_features import normalised_networks
from weightscape.flow import PopulationFlow
from weightscape.inference.point import RunSplit
from weightscape.predictive import predict
from weightscape.report.numbers import counted, score_name, shown

_MOST_MATCHED = 64
_NUM_ALONE = 32
_WANTED = {"regression": ("rmse", "nll"), "classification": ("accuracy", "nll")}
_FEWEST_RUNS = 4
"""|Z_U| of n held-out networks stays below √(3n): with 4 it can reach 3, from where on it speaks of copies."""


class Judged(NamedTuple):
    """A flow over a population, networks drawn from it, their scores beside others', and the audit by name.

    - `num_not_finite`: how many more networks were drawn, which overflow.  `audited`: the held-out ones of the audits.
    - `answers`: losses that were asked for and came, where the flow is one by loss.
    """

    flow: PopulationFlow
    networks: Draws
    num_not_finite: int
    audited: Draws
    scores: dict[str, dict[str, float]]
    audits: dict[str, Memorisation]
    answers: dict[str, Answer]


def judge_population(
    flow: PopulationFlow, networks: Draws, split: RunSplit, opened: OpenedRun, answers: dict[str, Answer]
) -> Judged:
    """Hold networks that a flow has drawn against those of the runs that it learned from, and of others.

    Audits take the last network of each held-out run: Z_U counts networks as independent, and iterates of a run are
    close to each other. With all of them Z_U of an exact generator has a standard deviation of 2 to 4, not 1. Where
    fewer than 4 runs are held out all iterates are taken, and `finding` says so.
    """
    x = np.asarray(opened.dataset.test.x)
    kept = finite_networks(networks, x)
    asked, remedy = "A flow that is judged must draw networks that are finite", "Train it for longer."
    require(bool(np.any(kept)), asked, f"none of {len(networks)}", remedy)
    judged = _in_a_row(networks)[:, list(np.flatnonzero(kept))]
    named = {"training": split.train, "held out": split.held_out, "flow": judged}
    found = {name: _scores(draws, opened) for name, draws in named.items()}
    audited = one_of_each_run(split.held_out)
    audits = audits_of(judged, split.train, audited, x)
    return Judged(flow, judged, int(np.sum(~kept)), audited, found, audits, answers)


def finding(judged: Judged, name: str) -> str:
    """What there is to say of how good and how new the networks are, and of those that are no networks."""
    by = judged.audits["functions"]
    first = next(iter(judged.scores["flow"]))
    ours, theirs = (shown(judged.scores[which][first]) for which in ("flow", "held out"))
    told = f"A flow draws networks for {name}: {first} {ours}, where networks of other runs have {theirs}"
    newness = f"they lie {by.ratio:.2f} times as far from the training networks as those do (Z_U = {by.z_u:.1f})."
    return " ".join([f"{told}; {newness}", *_remarks(judged)])


def population_result(judged: Judged) -> dict[str, Any]:
    """The numbers for `result.json`."""
    audits = {name: audit._asdict() for name, audit in judged.audits.items()}
    answers = {name: answer._asdict() for name, answer in judged.answers.items()}
    counts = {"num_networks": len(judged.networks) + judged.num_not_finite, "num_not_finite": judged.num_not_finite}
    return {"scores": judged.scores, "memorisation": audits, **counts, **({"given": answers} if answers else {})}


def finite_networks(draws: Draws, x: Float[np.ndarray, "point ..."]) -> Bool[np.ndarray, " network"]:
    """Which networks have weights and functions whose squares are finite, so that distances between them exist."""
    values = evaluate_functions(Header(draws.model, draws.scaling, draws.example), draws.params, jnp.asarray(x))
    kept = _have_finite_squares((values, draws.params), len(draws))
    if np.any(kept):  # what symmetries a network has is seen at one that is finite
        rows = list(np.flatnonzero(kept))
        kept[rows] = _have_finite_squares(normalised_networks(_in_a_row(draws)[:, rows]), len(rows))
    return kept


def one_of_each_run(held_out: Draws) -> Draws:
    """The last network of each run; all networks where runs are so few that Z_U of one of each could say nothing."""
    return held_out[:, -1:] if held_out.num_chains >= _FEWEST_RUNS else held_out


def audits_of(
    networks: Draws, train: Draws, held_out: Draws, x: Float[np.ndarray, "point ..."]
) -> dict[str, Memorisation]:
    """By functions at some inputs, and by weights of some networks, matched to those that may be their originals."""
    by_function = [function_features(draws, x) for draws in (networks, train, held_out)]
    by_weight = [weight_features(draws, train) for draws in (networks, train, held_out)]

    def distances(draws: Draws, which: int) -> np.ndarray:
        chosen = np.unique(np.linspace(0, len(draws) - 1, _MOST_MATCHED).astype(int))
        pairs = ((features[which][chosen], features[1]) for features in (by_function, by_weight))
        return matched_distances(draws, train, copy_candidates(*pairs), chosen=chosen)

    weights = audit(distances(networks, 0), distances(held_out, 2))
    return {"functions": memorisation(*by_function), "weights": weights}


def _scores(draws: Draws, opened: OpenedRun) -> dict[str, float]:
    """The mean score of single networks, and that of all together."""
    test, wanted = opened.dataset.test, _WANTED[opened.dataset.task]
    of = lambda some: plain_scores(scores(predict(some, test.x), test.y))
    flat = _in_a_row(draws)
    alone = [of(flat[0, i]) for i in range(min(_NUM_ALONE, len(flat)))]
    each = {f"{score_name(name)}, alone": float(np.mean([found[name] for found in alone])) for name in wanted}
    whole = of(flat)
    return {**each, **{f"{score_name(name)}, together": float(whole[name]) for name in wanted}}


def _remarks(judged: Judged) -> list[str]:
    """What must be known to read the numbers."""
    lost, drawn = judged.num_not_finite, len(judged.networks) + judged.num_not_finite
    overflow = f"Left out of all numbers, as not finite: {lost} of {counted(drawn, 'drawn network')}."
    runs, iterates = judged.audited.num_chains, judged.audited.num_draws
    dependent = f"Z_U takes {iterates} iterates of each of {counted(runs, 'held-out run')} for independent networks"
    told = {overflow: lost > 0, f"{dependent}, and says too much; train more runs.": iterates > 1}
    return [remark for remark, holds in told.items() if holds]


def _have_finite_squares(numbers: Tree, count: int) -> Bool[np.ndarray, " network"]:
    """Whether all numbers of each of `count` networks have finite squares, and their sums."""
    rows = [np.asarray(leaf).reshape(count, -1) for leaf in jax.tree.leaves(numbers)]
    with np.errstate(over="ignore", invalid="ignore"):
        return np.all([np.isfinite(np.einsum("ij,ij->i", each, each)) for each in rows], axis=0)


def _in_a_row(draws: Draws) -> Draws:
    return draws.map_leaves(lambda leaf: np.asarray(leaf).reshape(1, -1, *np.shape(leaf)[2:]))
