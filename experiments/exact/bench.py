"""What the stages of `exact_posterior` work on: the reference, a trained flow, and the inputs of predictions."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import numpy as np
from experiments.exact.settings import IDEAS, Case

import weightscape as ws
from weightscape.core.numbers import number
from weightscape.flow import Diffusion, Flow, OfPull, tuned_landing

_NUM_OFF_DATA = 256
NUM_JUDGED = 512


@dataclasses.dataclass(frozen=True)
class Bench:
    """What a stage works on: a case, its reference chains, a trained flow and the folder of it all."""

    case: Case
    draws: ws.Draws
    flow: Flow
    folder: Path

    @property
    def drawer(self) -> Flow | Diffusion:
        """What draws are weighed with: the diffusion, where the flow has pulls."""
        return self._gone_in(self.case.num_path_steps)

    @property
    def shorter(self) -> Flow | Diffusion:
        """The same in a quarter of the steps, for draws that are corrected otherwise."""
        return self._gone_in(max(8, self.case.num_path_steps // 4))

    def landed(self, time: float) -> Diffusion:
        """The pull to a time, in a quarter of the steps, and a landing from there."""
        landing = dataclasses.replace(self.case.landing, time=number(time))
        diffusion = Diffusion(self.flow, max(8, self.case.num_path_steps // 4), landing=landing)
        return tuned_landing(jax.random.key(12), diffusion)

    def _gone_in(self, num_steps: int) -> Flow | Diffusion:
        is_pulled = isinstance(self.flow.objective.prediction, OfPull)
        return Diffusion(self.flow, num_steps) if is_pulled else self.flow

    def held_out(self) -> ws.Draws:
        """Draws of chains that were held out."""
        num = max(1, round(self.flow.method.held_out * self.draws.num_chains))
        return self.draws[-num:][:, :: max(1, num * self.draws.num_draws // NUM_JUDGED)]


def reference(folder: Path, case: Case) -> ws.Draws:
    """The chains that everything is measured against."""
    draws = case.reference.run(jax.random.key(0), case.posterior(), store=folder / "reference", resume=True)
    assert isinstance(draws, ws.Draws)
    return draws


def train(folder: Path, case: Case, idea: str, num_steps: int | None) -> Bench:
    """The flow of an idea, from the store where it was trained before."""
    changes: dict[str, Any] = {**IDEAS[idea], **({} if num_steps is None else {"num_steps": num_steps})}
    method, draws = dataclasses.replace(case.flow, **changes), reference(folder, case)
    store = folder / f"flow-{idea.replace(', ', '-')}-{method.num_steps}"
    with jax.default_matmul_precision("tensorfloat32"):
        flow = method.run(jax.random.key(1), case.posterior(), draws=draws, store=store, resume=True)
    assert isinstance(flow, Flow)
    return Bench(case, draws, flow, folder)


def inputs(case: Case) -> dict[str, np.ndarray]:
    """Test inputs, and inputs far from all data: normal, with twice the spread of the test inputs."""
    x = np.asarray(case.data().test.x)[:1000]
    noise = np.random.default_rng(0).normal(size=(_NUM_OFF_DATA, *x.shape[1:]))
    return {"test": x, "off": (x.mean(axis=0) + 2 * x.std(axis=0) * noise).astype(x.dtype)}
