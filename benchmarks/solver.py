"""How many divergences and velocities a log weight takes: by scheme, by nodes, and by how steps are spread.

    python benchmarks/solver.py

A small flow is trained on a posterior with a narrow likelihood; the log weights of 512 draws are compared with those of
an adaptive solver of high accuracy. Draws among the tenth of the lowest weights, which count for nothing, are left out.
"""

import diffrax
import jax
import numpy as np

import weightscape as ws
from weightscape.core import Silent
from weightscape.flow import Adaptive, Equivariant, FixedSteps, Flow, Solver
from weightscape.metanet import Sizes

_STAGES = {"Heun": 2, "Bosh3": 3, "Tsit5": 6}


def main() -> None:
    flow = _flow()
    truth = _log_weights(flow, Adaptive(1e-6, 1e-6))
    counts = truth > np.quantile(truth, 0.1)
    print(
        "| divergences | scheme | velocities | bend 0 | bend 0.4 | bend 0.7 | bend 0.9 |\n|---|---|---|---|---|---|---|"
    )
    for num_nodes in (4, 6, 8, 10, 16):
        for scheme, num_steps in (("Heun", 36), ("Bosh3", 12), ("Bosh3", 24), ("Tsit5", 12)):
            steps = -(-num_steps // (num_nodes + 1)) * (num_nodes + 1)
            cells = [str(num_nodes), scheme, str(_STAGES[scheme] * steps)]
            for bend in (0.0, 0.4, 0.7, 0.9):
                solver = FixedSteps(num_steps, getattr(diffrax, scheme)(), bend, num_nodes)
                errors = (_log_weights(flow, solver) - truth)[counts]
                cells.append(f"{np.sqrt(np.mean(errors**2)):.3f}")
            print("| " + " | ".join(cells) + " |", flush=True)


def _flow() -> Flow:
    x = np.linspace(-1, 1, 12, dtype=np.float32)[:, None]
    y = (np.sin(3 * x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=12)).astype(np.float32)
    model = ws.Model(ws.networks.MLP(hidden=(2,)), ws.likelihoods.Gaussian(scale=0.3), ws.priors.Normal(scale=1.5))
    posterior = model.condition(ws.Batch(x, y))
    draws = ws.HMC(num_chains=64, num_draws=50, num_warmup=300, num_leapfrog=16, thin=4).run(
        jax.random.key(0), posterior, progress=Silent()
    )
    method = ws.FlowMatching(
        num_steps=1200,
        batch_size=64,
        learning_rate=3e-3,
        average=0.99,
        architecture=Equivariant(Sizes(width=16, edge_width=8, num_blocks=1, num_heads=4)),
        gap_every=0,
    )
    flow = method.run(jax.random.key(1), posterior, draws=draws, progress=Silent())
    assert isinstance(flow, Flow)
    return flow


def _log_weights(flow: Flow, solver: Solver) -> np.ndarray:
    draws = flow.with_solver(solver).sample(jax.random.key(2), 512)
    assert draws.log_proposal is not None
    return np.ravel(draws.log_density) - np.ravel(draws.log_proposal)


if __name__ == "__main__":
    main()
