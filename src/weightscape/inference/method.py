"""A method is a way to approximate a posterior: a frozen configuration with one verb, `run`."""

import abc
import hashlib
import os
from collections.abc import Iterable
from typing import Any, NamedTuple, Union

import equinox as eqx
import jax
import numpy as np

from weightscape.core import PRNGKey, Progress, default_progress
from weightscape.core.checks import require
from weightscape.core.config import encode
from weightscape.core.keys import require_key
from weightscape.draws import Draws, Examination, Recorder
from weightscape.inference.approximation import Approximation
from weightscape.inference.restarts import Restart
from weightscape.inference.starts import Start
from weightscape.posterior import Posterior

Init = Union[Draws, Approximation, Start, "Method", None]
"""Where to start: draws, a density, a distribution of starts, a method to run first, or the network's own weights."""


class Circumstances(NamedTuple):
    """What surrounds a run, as the arguments of `Method.run` say."""

    draws: Draws | None
    init: Init
    store: str | os.PathLike | None
    progress: Progress
    resume: bool
    examination: Examination
    restart: Restart | None


class Method(eqx.Module):
    """Settings of an inference method. Numbers are arrays, so changing one compiles nothing anew."""

    def run(  # noqa: PLR0913  the one verb of every method
        self,
        key: PRNGKey,
        posterior: Posterior,
        *,
        draws: Draws | None = None,
        init: Init = None,
        store: str | os.PathLike | None = None,
        progress: Progress | None = None,
        resume: bool = False,
        strict: bool = False,
        keep_all: bool = False,
        restart: Restart | None = None,
    ) -> Draws | Approximation:
        """Approximate the posterior.

        - `draws`: given to methods that learn from draws.
        - `init`: where to start: draws (chains take the last draw of its chains in turn), an approximation (chains take
          draws from it), `FromPrior()`, or a method that is run first, such as `DeepEnsemble()`; None takes the
          network's own initial weights.
        - `store`: a folder that takes draws and state as they are made, so that nothing is lost on interruption.
        - `progress`: what to report to, and how long the run may take; None shows a bar on a terminal.
        - `resume`: go on with the run in `store`, in the same bits as if it had never stopped, or begin one.
        - `strict`: raise where a chain does not move or is not finite; otherwise it is left out and named.
        - `keep_all`: keep such chains.
        - `restart`: give chains that look lost after warm-up a new start, such as `Nearby()`.
        """
        require_key(key, f"{type(self).__name__}.run")
        remedy = "Pass one of them, or neither to leave such chains out."
        require(not (strict and keep_all), "`strict` and `keep_all` must not both be set", "both", remedy)
        examination = Examination(strict, keep_all)
        around = Circumstances(draws, init, store, default_progress(progress), resume, examination, restart)
        return self.approximate(key, posterior, around)

    @abc.abstractmethod
    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Draws | Approximation:
        """What `run` does once its arguments are in order."""


class DensityMethod(Method):
    """A method that ends in a density, from which any number of draws can be taken."""

    @abc.abstractmethod
    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Approximation:
        """What `run` does once its arguments are in order."""


def settings(method: Method) -> dict[str, Any]:
    """The method's name and settings as plain JSON, for the record of a run."""
    return {"method": type(method).__name__, "settings": encode(method).tree}


def open_recorder(key: PRNGKey, method: Method, posterior: Posterior, around: Circumstances) -> Recorder:
    """A recorder that knows which run it records, so that a later one can continue it."""
    identity = {} if around.store is None else run_identity(key, method, posterior)
    return Recorder(posterior, around.store, identity, resume=around.resume)


def run_identity(key: PRNGKey, method: Method, posterior: Posterior) -> dict[str, Any]:
    """What must be the same for a run to be continued; more draws than before may be asked for."""
    asked = settings(method)
    asked["settings"]["fields"].pop("num_draws", None)
    digest = data_digest((*posterior.rows(), posterior.likelihood_power, posterior.prior_power))
    return {**asked, "key": np.asarray(jax.random.key_data(key)).tolist(), "data": digest}


def data_digest(arrays: Iterable[Any]) -> str:
    """A text that other data would not have."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
