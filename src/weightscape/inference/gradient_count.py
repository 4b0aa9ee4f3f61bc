"""How many gradients of the log density a method takes, as its settings say: a cost that no machine distorts.

One gradient is that of all training points at one set of weights; a gradient of B points out of N counts B/N. Methods
whose work depends on what they meet (NUTS, L-BFGS within Laplace, trajectories of a given length) have no number.
"""

from collections.abc import Callable
from typing import Any

from weightscape.inference.chains import Schedule
from weightscape.inference.mcmc import HMC, MALA, MCLMC, MetropolisHastings
from weightscape.inference.method import Method
from weightscape.inference.point import MAP, DeepEnsemble, Population
from weightscape.inference.sgmcmc import SGHMC, SGLD, SGNHT, ULA
from weightscape.inference.sgmcmc.course import course_of
from weightscape.inference.variational import LayerwiseVI, MeanFieldVI, NormalizingFlowVI

_GRADIENTS_OF_AN_ISOKINETIC_STEP = 2


def num_gradients(method: Method, num_points: int) -> float | None:
    """Gradients of all chains, members or samples together, warm-up included; None where the settings do not say.

    - `num_points`: N, the training points.

    Example:
    >>> num_gradients(DeepEnsemble(num_members=10, num_steps=2000, batch_size=20), 100)
    4000.0
    """
    count = _COUNTS.get(type(method))
    passes = None if count is None else count(method)
    if passes is None:
        return None
    batch_size = getattr(method, "batch_size", None)
    return float(passes if batch_size is None else passes * batch_size / num_points)


def num_transitions(schedule: Schedule) -> int:
    """Transitions of all chains, warm-up included; where gaps between draws differ, they come in turn."""
    gaps = (schedule.thin,) if isinstance(schedule.thin, int) else schedule.thin
    rounds, rest = divmod(schedule.num_draws, len(gaps))
    return schedule.num_chains * (schedule.num_warmup + rounds * sum(gaps) + sum(gaps[:rest]))


def _of_chains(method: Any) -> int:
    return num_transitions(Schedule(method.num_chains, method.num_draws, method.num_warmup, method.thin))


def _of_hmc(method: HMC) -> int | None:
    return None if method.trajectory is not None else _of_chains(method) * method.num_leapfrog


def _of_training(method: Any) -> int:
    return method.num_steps * getattr(method, "num_members", 1)


def _of_population(method: Population) -> int:
    return num_transitions(Schedule(method.num_runs, method.num_draws, method.num_steps, method.every))


def _of_bound(method: Any) -> int:
    return method.num_steps * method.num_samples


def _of_course(method: Any) -> int:
    return num_transitions(course_of(method).schedule())


_COUNTS: dict[type[Method], Callable[[Any], int | None]] = {
    HMC: _of_hmc,
    MALA: _of_chains,
    MCLMC: lambda method: _GRADIENTS_OF_AN_ISOKINETIC_STEP * _of_chains(method),
    MetropolisHastings: lambda method: 0,
    MAP: _of_training,
    DeepEnsemble: _of_training,
    Population: _of_population,
    **dict.fromkeys((MeanFieldVI, LayerwiseVI, NormalizingFlowVI), _of_bound),
    **dict.fromkeys((SGLD, SGHMC, SGNHT, ULA), _of_course),
}
