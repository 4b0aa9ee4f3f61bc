"""Log weights of draws from a flow and from the posterior; J is the distance between their means.

log w(θ) = log p(D, θ) − log q(θ) − log p(D),      0 everywhere for an exact flow.
"""

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from weightscape.flow import Gap
from weightscape.report.style import ALEATORIC, EPISTEMIC, INK, canvas, styled

_BINS = 40


@styled
def plot_log_weights(
    under_flow: Float[np.ndarray, " fresh"],
    under_posterior: Float[np.ndarray, " held_out"],
    gap: Gap,
    log_evidence: float,
) -> Figure:
    """Histograms of the log weights under both, with their means.

    - `log_evidence`: log p(D), taken off, so that an exact flow stands at 0.
    """
    parts = (("draws of the flow", under_flow, EPISTEMIC), ("held-out draws of the chains", under_posterior, ALEATORIC))
    # The outer thousandths are left out: one lost draw would squash the rest.
    ends = np.quantile(np.concatenate([under_flow, under_posterior]) - log_evidence, [0.001, 0.999])
    edges = np.linspace(ends[0], ends[1], _BINS + 1).tolist() if ends[1] > ends[0] else _BINS
    figure, (axis,) = canvas(1, width=6.6, height=3.6)
    for label, values, ink in parts:
        axis.hist(values - log_evidence, edges, density=True, color=ink, alpha=0.45, label=label)
        axis.axvline(float(np.mean(values)) - log_evidence, color=ink, lw=1.8)
    axis.axvline(0.0, color=INK, lw=1.0, ls=(0, (4, 2)), label="an exact flow")
    axis.set(xlabel="log weight in nats", title=f"J = {gap.value:.2f} ± {gap.standard_error:.2g} nats")
    axis.set_yticks([])
    axis.legend()
    return figure
