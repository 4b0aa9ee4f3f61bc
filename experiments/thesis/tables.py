"""The tables: ours, with the thesis's numbers in brackets where it has that configuration."""

from typing import Any

import numpy as np

TRAINING, NOISY, BLENDED = "training networks", "training network plus noise", "re-based blend"

THESIS: dict[str, dict[str, tuple[float, float]]] = {
    "cancer": {
        TRAINING: (0.992, 0.048),
        "euclidean-equivariant": (0.998, 0.101),
        "euclidean-equivariant-aligned": (0.998, 0.070),
        "euclidean-equivariant-aligned-transport": (0.993, 0.053),
        "normalized-equivariant": (0.993, 0.027),
        "geometric-equivariant-aligned": (0.993, 0.018),
    },
    "mnist": {
        TRAINING: (0.933, 0.231),
        "euclidean-equivariant-aligned": (0.737, 0.814),
        "euclidean-equivariant-aligned-transport": (0.757, 0.753),
        "normalized-equivariant": (0.753, 1.537),
        "geometric-equivariant": (0.737, 1.457),
        "geometric-equivariant-transport": (0.786, 1.443),
    },
}
"""Accuracy and loss of single networks. What it calls aligned stands beside our equivariant fields with aligned pairs,
the closest to its metanets. Its normalised networks had lost the last layer's scale, and with it their probabilities:
losses compare with ours in the Euclidean rows only."""

THESIS_BMA = {"mnist": {TRAINING: 0.963, "geometric-equivariant-transport": 0.943}}
"""Accuracy of 64 networks together; the thesis averages logits, we average probabilities."""

_HEAD = ("networks", "accuracy", "loss", "BMA accuracy", "BMA loss", "ECE", "JS", "overlap",
         "ratio, functions", "Z_U", "ratio, weights", "Z_U", "noise there", "blend there")  # fmt: skip
_AUDITED = ("functions", "weights")
_AUDIT = (("ratio", 2), ("z_u", 1))


def table(
    problem: str, results: dict[str, dict[str, Any]], known: dict[str, dict[str, Any]] | None = None
) -> list[str]:
    """One row for each kind of networks, as Markdown; with the audit where there is one.

    - `known`: rows of baselines, for the last two columns.
    """
    if not results:
        return []
    known = known or {}
    rows = [_cells(problem, name, found) + _there(name, found, known) for name, found in results.items()]
    head = _HEAD[: max(map(len, rows), default=0)]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def as_far_off(known: dict[str, dict[str, Any]], kind: str, ratio: float) -> tuple[float, float] | None:
    """Accuracy and loss of a kind of baseline whose functions are as far from training networks, or None if none is.

    Linear between the two amounts of noise, or shares, that it lies between; training networks themselves are at 0.
    """
    rows = [row for name, row in known.items() if name == TRAINING or name.startswith(kind)]
    places = np.array([row["functions"]["ratio"] for row in rows])
    order = np.argsort(places)
    if len(rows) < 2 or ratio > places.max():
        return None
    of = lambda what: float(np.interp(ratio, places[order], np.array([row[what] for row in rows])[order]))
    return of("accuracy"), of("loss")


def _there(name: str, found: dict[str, Any], known: dict[str, dict[str, Any]]) -> list[str]:
    if not known or "functions" not in found:
        return []
    if name in known:
        return ["", ""]
    pairs = [as_far_off(known, kind, found["functions"]["ratio"]) for kind in (NOISY, BLENDED)]
    return ["none" if pair is None else f"{pair[0]:.3f}, {pair[1]:.3f}" for pair in pairs]


def _cells(problem: str, name: str, found: dict[str, Any]) -> list[str]:
    theirs = THESIS.get(problem, {}).get(name, (None, None))
    count, together = max(((int(k), row) for k, row in found["bma"].items()), key=lambda pair: pair[0])
    audits = [f"{found[by][what]:.{digits}f}" for by in _AUDITED if by in found for what, digits in _AUDIT]
    share = found.get("share_finite", 1.0)
    return [
        name if share == 1 else f"{name}, {share:.0%} finite",
        _beside(found["accuracy"], theirs[0]),
        _beside(found["loss"], theirs[1]),
        _beside(together["accuracy"], THESIS_BMA.get(problem, {}).get(name) if count == 64 else None),
        f"{together['loss']:.3f}",
        f"{found['ece']:.3f}",
        f"{found['jensen_shannon']:.4f}",
        f"{found['overlap']:.3f}",
        *audits,
    ]


def _beside(ours: float, theirs: float | None) -> str:
    return f"{ours:.3f}" + ("" if theirs is None else f" ({theirs:.3f})")
