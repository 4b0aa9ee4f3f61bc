"""A method is a way to approximate a posterior: a frozen configuration with one verb, `run`."""

import abc
import os
from typing import Any, NamedTuple

import equinox as eqx

from weightscape.core import PRNGKey, Progress, default_progress
from weightscape.core.config import encode
from weightscape.core.keys import require_key
from weightscape.draws import Draws
from weightscape.posterior import Posterior


class Circumstances(NamedTuple):
    """What surrounds a run: draws to learn from, where to start, where to store, and what to report to."""

    draws: Draws | None
    init: Draws | None
    store: str | os.PathLike | None
    progress: Progress


class Method(eqx.Module):
    """Settings of an inference method. Numbers are arrays, so changing one compiles nothing anew."""

    def run(
        self,
        key: PRNGKey,
        posterior: Posterior,
        *,
        draws: Draws | None = None,
        init: Draws | None = None,
        store: str | os.PathLike | None = None,
        progress: Progress | None = None,
    ) -> Draws:
        """Approximate the posterior.

        - `draws`: given to methods that learn from draws.
        - `init`: where to start; chains take its last draws in turn.
        - `store`: a folder that takes the draws as they are made.
        - `progress`: what to report to, and how long the run may take; None shows a bar on a terminal.
        """
        require_key(key, f"{type(self).__name__}.run")
        return self.approximate(key, posterior, Circumstances(draws, init, store, default_progress(progress)))

    @abc.abstractmethod
    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Draws:
        """What `run` does once its arguments are in order."""


def settings(method: Method) -> dict[str, Any]:
    """The method's name and settings as plain JSON, for the record of a run."""
    return {"method": type(method).__name__, "settings": encode(method).tree}
