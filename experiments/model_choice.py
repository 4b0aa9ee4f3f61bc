"""Which width and which prior: evidence by flows, beside Laplace, the ELBO and a ladder, where the truth is known.

    python -m experiments.model_choice [--tiny]

Prints a Markdown table, one row for each model: log p(D) with the last layer integrated in closed form, by a very long
ladder of temperatures, by the weights of a flow (with their efficiency and Pareto index), by Laplace at one mode and
times its n!·2ⁿ copies, and the ELBO of mean-field VI. Then which model each would choose, its largest error, and its
time for all models, compilation included.
"""

import argparse
import math
from typing import NamedTuple

import jax
from experiments.choice.collapsed import collapsed_evidence
from experiments.choice.problem import Candidate, posterior

import weightscape as ws
from weightscape.evaluate import EvidenceRow
from weightscape.inference import LogEvidence

KEY = jax.random.key(0)
HEADINGS = ("model", "weights", "closed form", "ladder", "flow", "efficiency", "k", "Laplace", "its copies", "ELBO")
CLOSED, LADDER, FLOW, LAPLACE, COPIES, ELBO = HEADINGS[2], HEADINGS[3], HEADINGS[4], *HEADINGS[7:]


class Settings(NamedTuple):
    """What is compared, and how much work each value gets: of the ladder, of the flow, and draws weighed."""

    widths: tuple[int, ...] = (1, 2, 3, 4)
    prior_scales: tuple[float, ...] = (0.5, 1.0, 2.0)
    log2_points: int = 18
    ladder_draws: int = 4000
    flow_draws: int = 1000
    num_steps: int = 6000
    num_weighed: int = 5000
    ladder_replicas: int = 16
    num_nodes: int = 24
    architecture: ws.flow.Architecture = ws.flow.Equivariant(
        ws.metanet.Sizes(width=32, edge_width=8, num_blocks=1, num_heads=4)
    )


SMALL = ws.flow.Plain(ws.metanet.Sizes(width=8, num_blocks=1, num_heads=1))
TINY = Settings((2,), (1.0,), 10, 20, 20, 20, 60, 12, 2, SMALL)


class Found(NamedTuple):
    """All values of one model, what is known of the flow's weights, and the seconds that each method took."""

    values: dict[str, LogEvidence]
    weighed: ws.inference.Evidence
    seconds: dict[str, float]


def methods(settings: Settings) -> dict[str, ws.inference.Method]:
    flow = ws.FlowMatching(
        num_steps=settings.num_steps,
        batch_size=128,
        learning_rate=3e-3,
        average=0.998,
        architecture=settings.architecture,
        solver=ws.flow.FixedSteps(48, num_nodes=settings.num_nodes),
        gap_every=0,
    )
    draws = ws.ParallelTempering(num_chains=16, num_draws=settings.flow_draws, num_warmup=settings.flow_draws // 2)
    ladder = ws.ParallelTempering(
        num_chains=16,
        num_draws=settings.ladder_draws,
        num_warmup=settings.flow_draws,
        num_replicas=settings.ladder_replicas,
    )
    laplace = ws.Laplace("full", "hessian", mode=ws.MAP(num_steps=settings.num_steps))
    return {
        LADDER: ladder,
        FLOW: ws.flow.FlowAfter(draws, flow),
        LAPLACE: laplace,
        ELBO: ws.MeanFieldVI(num_steps=settings.num_steps),
    }


def examine(i: int, candidate: Candidate, settings: Settings) -> Found:
    """Every method on one model."""
    target = {str(candidate): posterior(candidate)}
    rows = ws.compare_evidence(jax.random.fold_in(KEY, i), target, methods(settings), num_draws=settings.num_weighed)
    by_name: dict[str, EvidenceRow] = {row.method: row for row in rows}
    weighed = by_name[FLOW].weighed
    values = {name: row.own for name, row in by_name.items() if row.own is not None}
    values[FLOW] = LogEvidence(weighed.value, "weighed", weighed.standard_error)
    copies = math.lgamma(candidate.width + 1) + candidate.width * math.log(2)
    values[COPIES] = LogEvidence(values[LAPLACE].value + copies, "Laplace")
    values[CLOSED] = collapsed_evidence(candidate, settings.log2_points)
    return Found(values, weighed, {name: row.seconds for name, row in by_name.items()})


def main(settings: Settings) -> dict[Candidate, Found]:
    print(f"| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}", flush=True)
    candidates = [Candidate(width, scale) for width in settings.widths for scale in settings.prior_scales]
    found = {}
    for i, candidate in enumerate(candidates):
        found[candidate] = examine(i, candidate, settings)
        print(row(candidate, found[candidate]), flush=True)
    print("\n" + "\n".join(summary(found)))
    return found


def row(candidate: Candidate, found: Found) -> str:
    shown = {name: _shown(value) for name, value in found.values.items()}
    if not found.weighed.is_trusted:
        shown[FLOW] += ", not trusted"
    judged = {"efficiency": f"{found.weighed.efficiency:.1%}", "k": f"{found.weighed.pareto_k:.2f}"}
    about = {"model": str(candidate), "weights": str(candidate.num_weights)}
    cells = {**about, **shown, **judged}
    return f"| {' | '.join(cells[name] for name in HEADINGS)} |"


def summary(found: dict[Candidate, Found]) -> list[str]:
    lines = ["| method | chooses | largest error, nats | beyond 4 standard errors | seconds |", "|---|---|---|---|---|"]
    for name in (CLOSED, LADDER, FLOW, LAPLACE, COPIES, ELBO):
        usable = {c: f for c, f in found.items() if name != FLOW or f.weighed.is_trusted}
        best = max(usable, key=lambda c: usable[c].values[name].value, default="none")
        errors = [f.values[name].value - f.values[CLOSED].value for f in usable.values()]
        bars = [math.hypot(f.values[name].standard_error, f.values[CLOSED].standard_error) for f in usable.values()]
        beyond = sum(abs(error) > 4 * bar for error, bar in zip(errors, bars, strict=True))
        counted = f"{beyond} of {len(errors)}" if name in (LADDER, FLOW) else "–"
        largest = max(errors, key=abs, default=math.nan)
        seconds = sum(f.seconds[name] for f in found.values() if name in f.seconds)
        lines.append(f"| {name} | {best} | {largest:+.3f} | {counted} | {f'{seconds:.0f}' if seconds else '–'} |")
    return lines


def _shown(value: LogEvidence) -> str:
    return f"{value.value:.3f}" + (f" ± {value.standard_error:.2g}" if value.standard_error else "")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="a run of seconds that shows nothing")
    main(TINY if parser.parse_args().tiny else Settings())
