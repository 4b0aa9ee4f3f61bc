"""`weightscape flow` on a population: a flow over trained networks, judged by networks of runs that it has not seen."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from weightscape.cli.finish import plain_scores
from weightscape.cli.flow_given import CONDITIONS, Answer, answered_losses, answers_table
from weightscape.cli.opened_run import OpenedRun
from weightscape.cli.screen import Screen
from weightscape.core import PRNGKey
from weightscape.core.checks import require, require_known
from weightscape.draws import Draws
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
from weightscape.flow import (
    Equivariant,
    Euclidean,
    FixedSteps,
    ForgetfulSteps,
    Geometric,
    Normalized,
    PopulationFlow,
    PopulationMatching,
    Revised,
    Solver,
)
from weightscape.inference import split_runs
from weightscape.metanet import Sizes
from weightscape.predictive import predict
from weightscape.report import Picture, Report, Table
from weightscape.report.describe import described
from weightscape.report.flow_training import plot_flow_training
from weightscape.report.numbers import score_name, shown

EUCLIDEAN = "euclidean"
GEOMETRIES = {
    EUCLIDEAN: Euclidean(),
    "geometric": Geometric(),
    "geometric-with-shifts": Geometric(with_shifts=True),
    "normalized": Normalized(),
    "normalized-with-shifts": Normalized(with_shifts=True),
}
NETWORKS = "networks"
_MOST_MATCHED = 64
_HELD_OUT = 0.2
_NUM_ALONE = 32
_WANTED = {"regression": ("rmse", "nll"), "classification": ("accuracy", "nll")}


class Judged(NamedTuple):
    """A flow over a population, networks drawn from it, their scores beside others', and the audit by name.

    - `answers`: losses that were asked for and came, where the flow is one by loss.
    """

    flow: PopulationFlow
    networks: Draws
    scores: dict[str, dict[str, float]]
    audits: dict[str, Memorisation]
    answers: dict[str, Answer]


def population_method(
    geometry: str, num_steps: int, sizes: Sizes, given: str | None, num_revisions: int, forgetting: float | None = None
) -> PopulationMatching:
    """Flow matching that two cores finish in minutes, for small networks.

    - `num_revisions`: how often the field looks at the data; 0 for one that does not.
    - `forgetting`: of the steps that draw; 0 for steps without noise, None for what fits the geometry.
    """
    require_known("`--geometry`", geometry, GEOMETRIES)
    if given is not None:
        require_known("`--given`", given, CONDITIONS)
    blind, looking = Equivariant(sizes, guided=False), Revised(sizes, num_revisions=max(1, num_revisions))
    return PopulationMatching(
        GEOMETRIES[geometry],
        num_steps=num_steps,
        batch_size=64,
        learning_rate=3e-3,
        average=0.995,
        architecture=looking if num_revisions else blind,
        solver=_steps(geometry, forgetting),
        conditions=None if given is None else CONDITIONS[given](),
    )


def _steps(geometry: str, forgetting: float | None) -> Solver:
    if forgetting is None:
        return ForgetfulSteps() if geometry == EUCLIDEAN else FixedSteps()
    fits = forgetting == 0 or geometry == EUCLIDEAN
    require(fits, f"`--forgetting` must be 0 where `--geometry` is {geometry}", forgetting, "Leave it out.")
    return ForgetfulSteps(forgetting=forgetting) if forgetting else FixedSteps()


def judge_population(
    key: PRNGKey, opened: OpenedRun, method: PopulationMatching, num_draws: int, store: Path, screen: Screen
) -> Judged:
    """Train on some runs, draw networks, and hold them against the others; what is in the store is gone on with."""
    key_train, key_draws, key_answers = jax.random.split(key, 3)
    train, held_out = split_runs(opened.draws, _HELD_OUT)
    screen.say(f"{opened.dataset}\nTraining a flow on {len(train)} networks; {len(held_out)} are held out.")
    posterior = opened.posterior()
    flow = method.run(key_train, posterior, draws=train, store=store, progress=screen.progress(), resume=True)
    assert isinstance(flow, PopulationFlow)
    answers = {}
    if method.conditions is not None:
        answers, flow = answered_losses(key_answers, flow, posterior, train, num_draws), flow.given(None)
    networks = flow.sample(key_draws, num_draws)
    named = {"training": train, "held out": held_out, "flow": networks}
    found = {name: _scores(draws, opened) for name, draws in named.items()}
    return Judged(flow, networks, found, _audits(networks, train, held_out, np.asarray(opened.dataset.test.x)), answers)


def population_report(judged: Judged, opened: OpenedRun, settings: dict[str, str]) -> Report:
    """The report of a flow over a population."""
    name, columns = opened.record.name, tuple(judged.scores["flow"])
    rows = tuple((row, *(shown(values[c]) for c in columns)) for row, values in judged.scores.items())
    together = Table(f"{name}: scores on the test rows", ("networks", *columns), rows)
    head = ("compared by", "flow", "held out", "ratio", "Z_U")
    cells = tuple((by, *(shown(value) for value in audit)) for by, audit in judged.audits.items())
    audit = Table(f"{name}: median distance to the nearest training network", head, cells)
    caption = "Where the loss of held-out runs rises, networks are learned by heart; the best moment is kept."
    training = Picture("training", "Training", caption, plot_flow_training(judged.flow.facts))
    told = {**settings, "flow": described(judged.flow.method)}
    tables = (together, audit, *([answers_table(name, judged.answers)] if judged.answers else []))
    return Report(f"A flow over networks of {name}", finding(judged, name), tables, (training,), told)


def finding(judged: Judged, name: str) -> str:
    """One sentence on how good and how new the networks are."""
    by = judged.audits["functions"]
    first = next(iter(judged.scores["flow"]))
    ours, theirs = (shown(judged.scores[which][first]) for which in ("flow", "held out"))
    told = f"A flow draws networks for {name}: {first} {ours}, where networks of other runs have {theirs}"
    return f"{told}; they lie {by.ratio:.2f} times as far from the training networks as those do (Z_U = {by.z_u:.1f})."


def population_result(judged: Judged) -> dict[str, Any]:
    """The numbers for `result.json`."""
    audits = {name: audit._asdict() for name, audit in judged.audits.items()}
    answers = {name: answer._asdict() for name, answer in judged.answers.items()}
    told = {"given": answers} if answers else {}
    return {"scores": judged.scores, "memorisation": audits, "num_networks": len(judged.networks), **told}


def _audits(networks: Draws, train: Draws, held_out: Draws, x: np.ndarray) -> dict[str, Memorisation]:
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
    flat = draws.map_leaves(lambda leaf: np.asarray(leaf).reshape(1, -1, *np.shape(leaf)[2:]))
    alone = [of(flat[0, i]) for i in range(min(_NUM_ALONE, len(flat)))]
    each = {f"{score_name(name)}, alone": float(np.mean([found[name] for found in alone])) for name in wanted}
    whole = of(flat)
    return {**each, **{f"{score_name(name)}, together": float(whole[name]) for name in wanted}}
