"""Flows that make their own training set, from different starts: evidence beside a ladder's, and gradients spent.

    python experiments/grown_flow.py [NOISE] [SEED]

Twelve points of a sine and two tanh units: seven weights, prior N(0, 1.5²), noise 0.3 or 0.1. Prints a Markdown table,
one row for each flow, all trained for as many steps. J is measured on chains that none of them has seen.

- annealed from the prior: `grow_flow(key, method, posterior)`.
- prior, straight: 64 networks of the prior, moved by 50 transitions of HMC before the first round.
- ensemble: 64 modes, moved in the same way.
- long chains: a flow trained once, on draws of 64 long chains of HMC.
- with few nodes: the first flow again, its log q taken by a solver that is too coarse.
"""

import sys

import diffrax
import jax
import numpy as np

import weightscape as ws
from weightscape.core import Silent
from weightscape.flow import Equivariant, FixedSteps, Flow, Growth, grow_flow, prior_draws
from weightscape.metanet import Sizes

NUM_STEPS, NUM_ROUNDS, NUM_STARTS = 1200, 3, 64
CHAINS = ws.HMC(num_chains=64, num_draws=50, num_warmup=300, num_leapfrog=16, thin=4)
LADDER = ws.ParallelTempering(num_chains=16, num_draws=3000)
ENSEMBLE = ws.DeepEnsemble(NUM_STARTS, num_steps=500)
GROWTH = Growth(num_rounds=NUM_ROUNDS, kernel=ws.HMC(num_warmup=10, num_leapfrog=16))


def posterior(noise: float) -> ws.Posterior:
    x = np.linspace(-1, 1, 12, dtype=np.float32)[:, None]
    y = (np.sin(3 * x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=12)).astype(np.float32)
    model = ws.Model(ws.networks.MLP(hidden=(2,)), ws.likelihoods.Gaussian(scale=noise), ws.priors.Normal(scale=1.5))
    return model.condition(ws.Batch(x, y))


def method(num_steps: int) -> ws.FlowMatching:
    architecture = Equivariant(Sizes(width=16, edge_width=8, num_blocks=1, num_heads=4))
    settings = {"batch_size": 64, "learning_rate": 3e-3, "average": 0.99, "architecture": architecture, "gap_every": 0}
    return ws.FlowMatching(num_steps=num_steps, **settings)


def flows(key, target: ws.Posterior):
    """For each start: its name, the flow, the gradients that its draws took, and the evidence of the way there."""
    keys = dict(zip(("starts", "grow", "chains", "train"), jax.random.split(key, 4), strict=True))
    starts = {
        "annealed from the prior": (None, 0),
        "prior, straight": (prior_draws(keys["starts"], target, NUM_STARTS), 0),
        "ensemble": (ENSEMBLE.run(keys["starts"], target, progress=Silent()), NUM_STARTS * ENSEMBLE.num_steps),
    }
    for name, (draws, spent) in starts.items():
        grown = grow_flow(keys["grow"], method(NUM_STEPS), target, draws, growth=GROWTH, progress=Silent())
        spent += grown.starts.facts["gradients"] + sum(each.num_gradients for each in grown.rounds)
        yield name, grown.flow, spent, grown.log_evidence
        if draws is None:
            yield "the same, with few nodes", grown.flow.with_solver(coarse()), spent, None
    draws = CHAINS.run(keys["chains"], target, progress=Silent())
    flow = method(NUM_ROUNDS * NUM_STEPS).run(keys["train"], target, draws=draws, progress=Silent())
    yield "long chains", flow, transitions(CHAINS) * CHAINS.num_leapfrog * CHAINS.num_chains, None


def coarse() -> FixedSteps:
    return FixedSteps(4, diffrax.Tsit5(), num_nodes=3)


def transitions(chains: ws.HMC | ws.ParallelTempering) -> int:
    return chains.num_warmup + chains.num_draws * chains.thin


def row(name: str, flow: Flow, spent: int, way: object, unseen: ws.Draws) -> str:
    evidence, gap = flow.evidence(jax.random.key(7), 4000), flow.gap(jax.random.key(8), unseen, num_draws=500)
    own = "" if way is None else f"{way.value:.2f} ± {way.standard_error:.2f}"
    found = (
        f"{evidence.value:.2f} ± {evidence.standard_error:.2f} | {evidence.efficiency:.0%} | {evidence.pareto_k:.2f}"
    )
    return f"| {name} | {found} | {gap.value:.1f} ± {gap.standard_error:.1f} | {own} | {spent / 1e3:.0f} |"


def main(noise: float, seed: int) -> None:
    target = posterior(noise)
    key_ladder, key_unseen, key_flows = jax.random.split(jax.random.key(seed), 3)
    truth = ws.ladder_evidence(LADDER.run(key_ladder, target, progress=Silent()))
    spent = LADDER.num_chains * LADDER.num_replicas * transitions(LADDER) * LADDER.num_leapfrog
    unseen = CHAINS.run(key_unseen, target, progress=Silent())[:, ::5]
    print("| flow | log p(D) | efficiency | Pareto k | J | of the way | gradients, thousands |\n" + "|---" * 7 + "|")
    print(f"| ladder | {truth.value:.2f} ± {truth.standard_error:.2f} | | | | | {spent / 1e3:.0f} |", flush=True)
    for each in flows(key_flows, target):
        print(row(*each, unseen), flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 0.3, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
