"""The loss of a run's rows along a path between networks."""

import equinox as eqx

from weightscape import geometry
from weightscape.cli.opened_run import OpenedRun
from weightscape.core.types import Scalar
from weightscape.draws import Draws, best_position
from weightscape.geometry import Loss
from weightscape.posterior import Joint, Parameters, Position
from weightscape.priors import NOTHING


class PathLoss(eqx.Module):
    """The loss along a path: weights as they are, and what the likelihood infers in unconstrained coordinates.

    Scales of the noise stay positive along every path.

    - `anywhere`: a position of the model; its likelihood part is replaced.
    """

    model: Joint
    loss: Loss
    anywhere: Position

    def __call__(self, params: Parameters) -> Scalar:
        inferred = self.model.place(self.anywhere._replace(likelihood=params.likelihood)).parameters.likelihood
        return self.loss(Parameters(params.network, inferred, NOTHING))


def path_losses(opened: OpenedRun) -> dict[str, PathLoss]:
    """The losses by the name of the rows; training rows come first, where they were kept."""
    posterior, anywhere = opened.posterior(), best_position(opened.draws)
    return {
        name: PathLoss(posterior.model, geometry.loss_of(posterior, batch), anywhere)
        for name, batch in opened.batches().items()
    }


def best_network(draws: Draws) -> Parameters:
    """The network of highest density among draws, as `PathLoss` takes it."""
    position = best_position(draws)
    return Parameters(draws.model.place(position).parameters.network, position.likelihood, NOTHING)
