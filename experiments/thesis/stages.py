"""What trained flows are good for beyond their own networks: other widths, other data, starts, and fewer examples.

- `transfer`: networks of 32 hidden units from flows that have seen 10.
- `guidance`: networks for Fashion-MNIST from flows that have seen networks for MNIST: led by its likelihood, and, where
  the field looks at data, shown those of Fashion-MNIST instead.
- `starts`: how many steps training takes from a flow's networks, and from random ones.
- `scaling`: short trainings on fewer networks, of a field that sees the data once.
- `sizes`: the same on networks of other widths, each with a population of its own.
- `revisions`: short trainings of fields that revise their draft more or less often, with Newton's step and without, two
  of each.
- `factors`: the same with the step by Kronecker factors.
- `often`: networks of the long flow, which revises more or less often than in training.
- `looks`: short trainings of fields that see few rows at a time, always the same or in turn, two of each.
- `forgetting`, `forgetting-long`, `forgetting-often`: networks drawn in steps that forget
  (`experiments.thesis.forgetting`).
- `costs`: drawing in fewer steps of the solver, beside training that looks at as many rows.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from experiments.thesis import judging, populations
from experiments.thesis.forgetting import forgetting, forgetting_long, forgetting_often
from experiments.thesis.settings import REVISED, Problem, configurations, posterior_on
from experiments.thesis.stage import ONE_STEP, SEEDS, Stage, briefly_trained, long_revised, trained

import weightscape as ws
from weightscape import evaluate, flow
from weightscape.data.images import fashion_mnist

SHOWN = ("euclidean-equivariant", "euclidean-revised-long")
NARROW, WIDE = (10,), (32,)
STRENGTHS = (0.01, 0.1, 0.3, 1.0)
CURVED_STRENGTHS = (1.0, 10.0, 30.0)
GUIDING_ROWS, GUIDING_PRODUCTS = 2000, 16
STEPS = (1, 100, 1000)
NUM_NETWORKS = (100, 600, 2400)
WIDTHS = (5, 20, 40)
REVISIONS = (1, 2, 3)
PRODUCTS = {"": 0, " with Newton's step": 8}
OFTEN = (1, 2, 3, 5)
LOOKS = (32, 128, 512)
TURNS = {"always the same": False, "in turn": True}
SOLVER_STEPS = (1, 2, 4, 8, 24)
EVALUATIONS = 3  # of a velocity in each step of the solver's scheme
JUDGED = ("revisions", "factors", "often", "looks", "forgetting", "forgetting-long", "forgetting-often")
"""Stages whose networks are judged against the population in full."""
_CURVATURE_ROWS = 2048
_BATCH = 128
_RUNS_OF_A_WIDTH = 4000
_NUM_STARTS = 64


def transfer(stage: Stage) -> dict[str, Any]:
    """Accuracy and loss of wide networks, with no training on any."""
    train, test = _parts(stage.problem.data())
    wide = posterior_on(train, WIDE, stage.problem.prior)
    return {name: _scored(flow.transfer(each, wide), stage, test) for name, each in _flows(stage).items()}


def guidance(stage: Stage) -> dict[str, Any]:
    """Accuracy and loss on Fashion-MNIST."""
    train, test = _parts(fashion_mnist(flatten=True))
    few = posterior_on(_first(train, GUIDING_ROWS), stage.problem.hidden, stage.problem.prior)
    whole = posterior_on(train, stage.problem.hidden, stage.problem.prior)
    found = {}
    for name, each in _flows(stage).items():
        found[f"{name}, as it is"] = _scored(flow.guided(each, few, 0.0), stage, test)
        for strength in STRENGTHS:
            led = flow.guided(each, few, strength, num_products=0)
            found[f"{name}, guided {strength} by gradients"] = _scored(led, stage, test)
        found |= {f"{name}, {how}": _scored(led, stage, test) for how, led in _by_curvature(each, few)}
        if configurations()[name].field == REVISED:
            found[f"{name}, shown Fashion-MNIST"] = _scored(flow.transfer(each, whole), stage, test)
    return {name: row for name, row in found.items() if row}


def _by_curvature(drawn: ws.PopulationFlow, few: ws.Posterior) -> Iterator[tuple[str, flow.Guided]]:
    """A flow led with the curvature of the likelihood in sight, without noise and with it."""
    steps = {"": drawn.solver, ", with noise": flow.ForgetfulSteps()}
    for strength, (noise, solver) in itertools.product(CURVED_STRENGTHS, steps.items()):
        led = flow.guided(drawn.with_solver(solver), few, strength, num_products=GUIDING_PRODUCTS)
        yield f"guided {strength:g}{noise}", led


def starts(stage: Stage) -> dict[str, Any]:
    """Accuracy and loss after so many steps, for both data sets, from networks of a flow and from random ones."""
    drawn = _flows(stage)["euclidean-revised-long"]
    found = {}
    for name, data in (("MNIST", stage.problem.data()), ("Fashion-MNIST", fashion_mnist(flatten=True))):
        train, test = _parts(data)
        posterior = posterior_on(train, stage.problem.hidden, stage.problem.prior)
        networks = flow.transfer(drawn, posterior).sample(jax.random.key(5), _NUM_STARTS)
        for start, init in (("flow", networks), ("random", None)):
            for count in STEPS:
                runs = dataclasses.replace(stage.problem.population, num_runs=_NUM_STARTS, num_steps=count)
                ended = runs.run(jax.random.key(6), posterior, init=init)
                found[f"{name}, {start}, {count} steps"] = _of_networks(ended, test)
    return found


def scaling(stage: Stage) -> dict[str, Any]:
    """Flows that were shown fewer networks, without noise and with it, judged against those that they were shown."""
    found, train = {}, stage.split.train
    for count in (*(few for few in NUM_NETWORKS if few < len(train)), len(train)):
        fewer = stage._replace(split=stage.split._replace(train=train[:count]), against=stage.against.first(count))
        of_few = briefly_trained(fewer, f"factors-1-of-{count}", 0, ONE_STEP)
        found[f"{count} networks"] = fewer.judged(of_few)
        found[f"{count} networks, with noise"] = fewer.judged(of_few.with_solver(flow.ForgetfulSteps()))
    return found


def sizes(stage: Stage) -> dict[str, Any]:
    """Training networks of other widths, and those that short trainings draw, without noise and with it."""
    found = {}
    runs = dataclasses.replace(stage.problem.population, num_runs=_RUNS_OF_A_WIDTH)
    for width in WIDTHS:
        problem = dataclasses.replace(stage.problem, hidden=(width,), population=runs)
        folder = stage.folder / f"width-{width}"
        split = populations.population(folder, problem)
        other = Stage(folder, problem, split, judging.known(folder, problem, split))
        drawn = briefly_trained(other, "factors-1", 0, ONE_STEP)
        found[f"{width} units, training networks"] = judging.judged(split.train[: problem.num_generated], other.against)
        found[f"{width} units, drawn"] = other.judged(drawn)
        found[f"{width} units, drawn with noise"] = other.judged(drawn.with_solver(flow.ForgetfulSteps()))
    return found


def costs(stage: Stage) -> dict[str, Any]:
    """Networks drawn in fewer steps of the solver, and those that as many rows train from random starts."""
    found, drawn = {}, _flows(stage)["euclidean-revised-long"]
    train, test = _parts(stage.problem.data())
    posterior = posterior_on(train, stage.problem.hidden, stage.problem.prior)
    for count in SOLVER_STEPS:
        quick = dataclasses.replace(drawn, solver=flow.FixedSteps(count))
        num_rows = EVALUATIONS * count * _rows_of_a_look(drawn.method.architecture)
        found[f"drawn in {count} steps, {num_rows:,} rows"] = _scored(quick, stage, test)
        num_steps = max(1, num_rows // _BATCH)
        runs = dataclasses.replace(
            stage.problem.population, num_runs=_NUM_STARTS, num_steps=num_steps, batch_size=_BATCH, share_batches=True
        )
        ended = runs.run(jax.random.key(7), posterior)
        found[f"trained in {num_steps:,} steps, as many rows"] = _of_networks(ended, test)
    return found


def _rows_of_a_look(field: flow.Revised) -> int:
    """How many rows a field differentiates for one velocity; a product with the curvature counts as a gradient."""
    assert field.rows is not None and not field.kronecker
    return field.num_revisions * (field.rows + field.num_products * min(field.rows, _CURVATURE_ROWS))


def revisions(stage: Stage) -> dict[str, Any]:
    """Networks of fields that revise so often, with and without Newton's step, for two keys of the training."""
    found = {}
    for shown, count, seed in itertools.product(PRODUCTS, REVISIONS, SEEDS):
        changes = {"num_revisions": count, "num_products": PRODUCTS[shown]}
        found[f"{count} revisions{shown}, key {seed}"] = _revised(
            stage, f"revised-{count}-{PRODUCTS[shown]}", seed, changes
        )
    return found


def factors(stage: Stage) -> dict[str, Any]:
    """The same, shown the step by Kronecker factors, once and twice."""
    found = {}
    for count, seed in itertools.product(REVISIONS[:2], SEEDS):
        changes = {"num_revisions": count, "num_products": 0, "kronecker": True}
        found[f"{count} revisions with Kronecker factors, key {seed}"] = _revised(
            stage, f"factors-{count}", seed, changes
        )
    return found


def often(stage: Stage) -> dict[str, Any]:
    """Networks of the long flow that sees the data, with other numbers of revisions."""
    drawn = long_revised(stage)
    return {f"{count} revisions": stage.judged(drawn.with_revisions(count)) for count in OFTEN}


def looks(stage: Stage) -> dict[str, Any]:
    """Networks of fields that see so many rows at a time, always the same or others each time, for two keys."""
    found = {}
    for way, count, seed in itertools.product(TURNS, LOOKS, SEEDS):
        name = f"looks-{count}-{'turn' if TURNS[way] else 'same'}"
        changes = {"rows": count, "in_turn": TURNS[way], "num_revisions": 2}
        found[f"{count} rows, {way}, key {seed}"] = _revised(stage, name, seed, changes)
    return found


def _revised(stage: Stage, name: str, seed: int, changes: dict[str, Any]) -> dict[str, Any]:
    """The judgement of a short training of a field that differs from the problem's by some changes."""
    return stage.judged(briefly_trained(stage, name, seed, changes))


STAGES: dict[str, Callable[[Stage], dict[str, Any]]] = {
    "transfer": transfer,
    "guidance": guidance,
    "starts": starts,
    "scaling": scaling,
    "sizes": sizes,
    "revisions": revisions,
    "factors": factors,
    "often": often,
    "looks": looks,
    "forgetting": forgetting,
    "forgetting-long": forgetting_long,
    "forgetting-often": forgetting_often,
    "costs": costs,
}


def stages_of(problem: Problem) -> tuple[str, ...]:
    """Those that make sense for a problem."""
    if problem.hidden != NARROW:
        return ("often", "forgetting-long", "forgetting-often")
    return (
        tuple(STAGES)
        if problem.dataset == "mnist"
        else ("transfer", "scaling", "sizes", "revisions", "factors", "looks", "forgetting")
    )


def _flows(stage: Stage) -> dict[str, ws.PopulationFlow]:
    named = {name: configurations()[name] for name in SHOWN}
    return {name: trained(stage.folder, stage.problem, each, stage.split.train) for name, each in named.items()}


def _scored(drawn: Any, stage: Stage, test: ws.Batch) -> dict[str, Any]:
    """Scores of the networks that are finite, where there are some: a flow that is led too hard may overflow."""
    networks = drawn.sample(jax.random.key(4), stage.problem.num_generated)
    finite = np.flatnonzero(np.isfinite(networks.log_density[0]))
    if len(finite) == 0:
        return {}
    return _of_networks(networks[:, finite], test) | {"share_finite": len(finite) / len(networks)}


def _of_networks(networks: ws.Draws, test: ws.Batch) -> dict[str, Any]:
    y = np.asarray(test.y).ravel().astype(int)
    p = evaluate.function_features(networks, test.x).reshape(len(networks), len(y), -1)
    return judging.scored(p, y)


def _parts(data: ws.Dataset) -> tuple[ws.Batch, ws.Batch]:
    return data.train, data.test


def _first(batch: ws.Batch, count: int) -> ws.Batch:
    return ws.Batch(batch.x[:count], batch.y[:count], batch.scaling)
