"""What the variational methods have in common: checks of their settings, and the objective that these describe."""

from weightscape.core.checks import require_count
from weightscape.core.layout import Layout
from weightscape.inference.variational.elbo import Elbo
from weightscape.inference.variational.estimator import Estimator, Reparameterised
from weightscape.inference.variational.kl import ClosedForm, Divergence, MonteCarlo, has_independent_normals
from weightscape.posterior import Posterior


def check_counts(method: str, num_samples: int, batch_size: int | None, num_evidence_draws: int) -> None:
    """Raise where a count of `method` makes no sense."""
    require_count(f"`num_samples` of {method}", num_samples)
    require_count(f"`num_evidence_draws` of {method}", num_evidence_draws, least=2)
    if batch_size is not None:
        require_count(f"`batch_size` of {method}", batch_size)


def bound(
    posterior: Posterior,
    layout: Layout,
    kl: Divergence | None,
    estimator: Estimator,
    sizes: tuple[int, int | None],
) -> Elbo:
    """The objective; `sizes` are the number of draws and the size of a batch.

    Without a choice the divergence is by Monte Carlo where log p(D, z) and log q(z) are taken at the same draw and with
    all points, so that their noise cancels; else in closed form where there is one.
    """
    num_samples, batch_size = sizes
    if kl is None:
        cancels = isinstance(estimator, Reparameterised) and batch_size is None
        closed = has_independent_normals(posterior.model.prior) and not cancels
        kl = ClosedForm() if closed else MonteCarlo()
    return Elbo(posterior, layout, kl, estimator, num_samples, batch_size)
