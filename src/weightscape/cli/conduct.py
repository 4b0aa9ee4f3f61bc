"""How a run is conducted: where chains start, what happens to lost ones, and whether unusable ones are kept."""

from typing import NamedTuple

from weightscape.core.checks import require, require_known
from weightscape.inference import MAP, Afresh, DeepEnsemble, FromNetwork, FromPrior, Method, Nearby
from weightscape.inference.restarts import Restart
from weightscape.inference.starts import Start

STARTS = {"network": FromNetwork, "prior": FromPrior, "map": MAP, "ensemble": DeepEnsemble}
RESTARTS = {"nearby": Nearby, "prior": Afresh}


class ConductOptions(NamedTuple):
    """What the user said; names as in `STARTS` and `RESTARTS`."""

    start: str = "network"
    restart: str | None = None
    strict: bool = False
    keep_all: bool = False


class Conduct(NamedTuple):
    """Arguments of `Method.run`."""

    init: Start | Method
    restart: Restart | None
    strict: bool
    keep_all: bool


def choose_conduct(options: ConductOptions, method: Method) -> Conduct:
    """The conduct that was asked for; an ensemble to start from has a member for each chain."""
    require_known("`--start`", options.start, STARTS)
    if options.restart is not None:
        require_known("`--restart`", options.restart, RESTARTS)
    both = options.strict and options.keep_all
    require(not both, "`--strict` and `--keep-all` must not both be given", "both", "Leave one out.")
    num_chains = getattr(method, "num_chains", 1)
    init = DeepEnsemble(num_members=num_chains) if options.start == "ensemble" else STARTS[options.start]()
    restart = None if options.restart is None else RESTARTS[options.restart]()
    return Conduct(init, restart, options.strict, options.keep_all)
