"""The evidence with the last layer integrated in closed form: what is left is an integral over 2 n of 3 n + 1 weights.

Given the hidden units' weights the network is linear in the rest, u = (b, v₁ … v_n) with u ~ N(0, s² I), so

    p(y | w, c) = N(y; 0, σ² I + s² Φ Φᵀ),      Φ = (1, tanh(w₁ x + c₁), …, tanh(w_n x + c_n)),

and p(D) = E[p(y | w, c)] over the prior of w and c. One unit leaves two integrals, which a grid takes to rounding; more
are taken by quasi-Monte Carlo, whose error the spread over scrambled sequences tells. No chain is in it.
"""

import numpy as np
from experiments.choice.problem import NOISE, Candidate, rows
from scipy.special import logsumexp, ndtri
from scipy.stats import norm, qmc

from weightscape.inference import LogEvidence

_NUM_SCRAMBLES = 16


def collapsed_evidence(candidate: Candidate, log2_points: int = 17) -> LogEvidence:
    """log p(D) of one unit by a grid, and of more by 16 scrambled Sobol sequences of 2^`log2_points` points each."""
    if candidate.width == 1:
        return LogEvidence(_by_grid(candidate.prior_scale), "exact")
    return _by_sequences(candidate, log2_points)


def log_marginal(candidate: Candidate, w: np.ndarray, c: np.ndarray) -> np.ndarray:
    """log N(y; 0, σ² I + s² Φ Φᵀ) for many (unit, point) at once, by the Cholesky factor of σ²/s² I + Φᵀ Φ."""
    x, y = rows()
    columns = [np.ones((len(x), w.shape[1])), *(np.tanh(np.outer(x, w[k]) + c[k]) for k in range(len(w)))]
    ratio, size = (NOISE / candidate.prior_scale) ** 2, len(columns)
    factor, log_det, explained = {}, 0.0, 0.0
    whitened = []
    for i, column in enumerate(columns):
        for j in range(i + 1):
            inner = np.einsum("rp,rp->p", column, columns[j]) + ratio * (i == j)
            inner = inner - sum(factor[i, k] * factor[j, k] for k in range(j))
            factor[i, j] = np.sqrt(inner) if i == j else inner / factor[j, j]
        left = y @ column - sum(factor[i, k] * whitened[k] for k in range(i))
        whitened.append(left / factor[i, i])
        log_det, explained = log_det + np.log(factor[i, i]), explained + whitened[i] ** 2
    constant = 0.5 * size * np.log(ratio) - 0.5 * len(y) * np.log(2 * np.pi * NOISE**2)
    return constant - log_det - 0.5 * (y @ y - explained) / NOISE**2


def _by_grid(scale: float, num_nodes: int = 601) -> float:
    nodes = np.linspace(-9, 9, num_nodes)
    w, c = (each.reshape(1, -1) for each in np.meshgrid(nodes, nodes))
    terms = log_marginal(Candidate(1, scale), scale * w, scale * c) + norm.logpdf(w[0]) + norm.logpdf(c[0])
    return float(logsumexp(terms) + 2 * np.log(nodes[1] - nodes[0]))


def _by_sequences(candidate: Candidate, log2_points: int) -> LogEvidence:
    values = []
    for seed in range(_NUM_SCRAMBLES):
        points = qmc.Sobol(2 * candidate.width, rng=seed).random_base2(log2_points)
        w, c = np.split(candidate.prior_scale * ndtri(points.T), 2)
        values.append(logsumexp(log_marginal(candidate, w, c)) - log2_points * np.log(2))
    means = np.exp(np.array(values) - max(values))
    error = means.std(ddof=1) / (means.mean() * np.sqrt(_NUM_SCRAMBLES))
    return LogEvidence(float(max(values) + np.log(means.mean())), "exact", float(error))
