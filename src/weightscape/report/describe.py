"""Objects in words: `Normal(scale=1)`, `MLP(hidden=16×16, activation=tanh)`; for settings that people read."""

import dataclasses

import jax
import numpy as np

from weightscape.core.tree import size
from weightscape.draws import Draws
from weightscape.inference import LogEvidence
from weightscape.report.numbers import counted, duration

_MOST_CHARACTERS = 200


def described(thing: object) -> str:
    """An object by its name and fields."""
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        fields = [f"{f.name}={described(getattr(thing, f.name))}" for f in dataclasses.fields(thing) if f.init]
        return f"{type(thing).__name__}({', '.join(fields)})"
    if isinstance(thing, (jax.Array, np.ndarray, np.generic, float)):
        return f"{float(thing):.6g}" if np.size(thing) == 1 else f"array of shape {np.shape(thing)}"  # pyright: ignore[reportArgumentType]  one number
    if isinstance(thing, (tuple, list)):
        return "×".join(described(item) for item in thing) or "none"
    if callable(thing):
        return str(getattr(thing, "__name__", type(thing).__name__))
    return str(thing)[:_MOST_CHARACTERS]


def describe_count(draws: Draws) -> str:
    """How many draws there are, and how many were asked for where the time did not suffice."""
    made = f"{counted(draws.num_chains, 'chain')} of {counted(draws.num_draws, 'draw')}"
    asked = draws.facts.get("settings", {}).get("fields", {}).get("num_draws", draws.num_draws)
    return made if draws.num_draws >= asked else f"{made}, of {asked} asked for: the time was up or the run stopped"


def describe_draws(draws: Draws) -> dict[str, str]:
    """What is known of draws: the model, the method, its time, and the health of its chains."""
    weights = size(jax.tree.map(lambda leaf: leaf[0, 0], draws.params.network))
    facts = draws.facts
    described_draws = {
        "network": described(draws.model.network),
        "weights": counted(weights, "weight"),
        "likelihood": described(draws.model.likelihood),
        "prior of the weights": described(draws.model.prior),
        "draws": describe_count(draws),
        "health of the chains": str(draws.health),
        "complete": "yes" if facts.get("complete", True) else "no: the run was stopped; these are the draws it made",
    }
    if "seconds" in facts:
        described_draws["time for the draws"] = duration(facts["seconds"])
    if "acceptance" in draws.info:
        described_draws["mean acceptance"] = f"{float(np.mean(draws.info['acceptance'])):.2f}"
    if "is_divergent" in draws.info:
        described_draws["divergent transitions"] = str(int(np.sum(draws.info["is_divergent"])))
    return described_draws | _describe_density(draws)


def _describe_density(draws: Draws) -> dict[str, str]:
    """What is known of the density that the draws came from, where there is one."""
    facts, rows = draws.facts, {}
    if "log_evidence" in facts:
        rows["log evidence"] = str(LogEvidence(**facts["log_evidence"]))
    if "distance_to_mode" in facts:
        rows["distance to the mode"] = f"{facts['distance_to_mode']:.2g} standard deviations; small at a mode"
    if "structure" in facts:
        rows["structure"] = str(facts["structure"])
    if facts.get("diagonal"):
        rows["without Kronecker factors"] = "; ".join(f"{path}: {why}" for path, why in facts["diagonal"].items())
    if "tuned" in facts:
        rows["tuned by the evidence"] = ", ".join(f"{name} × {by:.3g}" for name, by in facts["tuned"].items())
    return rows
