"""The training of a flow: its loss, the loss on draws that it has not seen, and J where it was measured."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from weightscape.core.checks import require
from weightscape.core.facts import Facts
from weightscape.report.style import ALEATORIC, EPISTEMIC, MUTED, canvas, styled


@styled
def plot_flow_training(facts: Facts) -> Figure:
    """Left: losses against steps. Right: J with two standard errors.

    - `facts`: those of a trained flow.
    """
    has_losses = len(facts.get("losses", ())) > 0
    remedy = "Pass `flow.facts` of a flow that was trained."
    require(has_losses, "A picture of training must have losses", "facts without", remedy)
    figure, (left, right) = canvas(2, width=4.6, height=3.4)
    for name, label, ink in (("losses", "training", EPISTEMIC), ("held_out_losses", "held out", ALEATORIC)):
        values = np.asarray(facts[name], np.float64)
        steps = facts["num_steps"] * np.arange(1, len(values) + 1) / len(values)
        left.plot(steps, values, color=ink, lw=1.2, label=label)
    left.set(title="loss", xlabel="step", ylabel="loss")
    if min(*facts["losses"], *facts["held_out_losses"]) > 0:
        _use_logarithms(left)
    left.legend()
    _draw_gaps(right, facts.get("gaps", ()))
    return figure


def _use_logarithms(axis: Axes) -> None:
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    axis.yaxis.set_major_formatter("{x:g}")  # the default one writes formulas
    axis.yaxis.set_minor_formatter("{x:g}" if high < 10 * low else "")  # within a decade there may be one tick alone


def _draw_gaps(axis: Axes, gaps: list[dict[str, float]]) -> None:
    axis.set(title="J, distance to the posterior", xlabel="step", ylabel="nats")
    if not gaps:
        axis.text(0.5, 0.5, "not measured", transform=axis.transAxes, color=MUTED, ha="center")
        return
    steps, values, errors = ([gap[name] for gap in gaps] for name in ("step", "value", "standard_error"))
    axis.errorbar(steps, values, 2 * np.asarray(errors), color=EPISTEMIC, marker="o", ms=4, lw=1.4)
    if min(values) > 0 and max(values) > 10 * min(values):
        _use_logarithms(axis)
    else:
        axis.set_ylim(bottom=min(0.0, *(v - 2 * e for v, e in zip(values, errors, strict=True))))
