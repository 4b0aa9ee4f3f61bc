"""Every continuous prior under HMC, on two weights, against quadrature: mean, covariance and a tail probability."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.known import assert_moments, monte_carlo_error
from tests.laws import PRIORS

import weightscape as ws

X = np.array([[1.0, 0.3], [0.5, -1.0], [-0.4, 0.8], [1.2, 1.0]])
Y = np.array([0.9, -0.2, 0.3, 1.6])
NOISE = 0.8
GRID = np.sinh(np.linspace(-3.2, 3.2, 641))  # to ±12, denser near zero, where heavy-tailed priors peak
SCALES = np.exp(np.linspace(-9, 9, 601))  # latent scales


def network():
    like = lambda key, x: {"a": jnp.zeros(()), "b": jnp.zeros(())}
    return ws.networks.Function(like, lambda params, x: (x[:, 0] * params["a"] + x[:, 1] * params["b"])[:, None])


def integral(values, points):
    return np.trapezoid(values, points, axis=-1)


def mixed(log_scale_density):
    """∫ N(w; 0, τ²) p(τ) dτ on the grid of weights."""
    normal = stats.norm.pdf(GRID[:, None], 0, SCALES[None, :])
    return integral(normal * np.exp(log_scale_density)[None, :], SCALES)


def mixed_together(log_scale_density):
    """∫ N(a; 0, τ²) N(b; 0, τ²) p(τ) dτ on the grid of pairs."""
    normal = stats.norm.pdf(GRID[:, None], 0, SCALES[None, :])
    weights = np.exp(log_scale_density) * np.gradient(SCALES)
    return np.einsum("as,bs,s->ab", normal, normal, weights)


half_normal = lambda scale: mixed(stats.halfnorm.logpdf(SCALES, scale=scale))
MARGINALS = {
    "augmented_student_t": lambda: np.outer(*[stats.t.pdf(GRID, 3, scale=0.5)] * 2),
    "hierarchical": lambda: np.outer(half_normal(0.8), half_normal(0.8)),
    "hierarchical_shared": lambda: mixed_together(stats.gamma.logpdf(SCALES, 2.0, scale=0.5)),
    "hierarchical_centred": lambda: mixed_together(stats.lognorm.logpdf(SCALES, 0.5, scale=np.exp(-0.5))),
    "by_path": lambda: np.outer(stats.laplace.pdf(GRID, 0, 0.4), half_normal(1.0)),
}


def prior_density(name):
    """p(a, b) on the grid of pairs, latent variables integrated out."""
    if name in MARGINALS:
        return MARGINALS[name]()
    log_density = lambda a, b: PRIORS[name].log_density({"a": a, "b": b})
    pairs = jax.vmap(jax.vmap(log_density, (None, 0)), (0, None))(jnp.asarray(GRID), jnp.asarray(GRID))
    return np.exp(np.asarray(pairs, np.float64))


def truth(name):
    """Mean, covariance and P(a > 1) of the posterior by quadrature."""
    a, b = np.meshgrid(GRID, GRID, indexing="ij")
    residuals = Y[:, None, None] - X[:, :1, None] * a - X[:, 1:, None] * b
    width = np.gradient(GRID)
    mass = prior_density(name) * np.exp(-0.5 * (residuals**2).sum(axis=0) / NOISE**2) * np.outer(width, width)
    mass /= mass.sum()
    both = np.stack([a, b])
    mean = np.einsum("kab,ab->k", both, mass)
    centred = both - mean[:, None, None]
    return mean, np.einsum("kab,lab,ab->kl", centred, centred, mass), mass[a > 1.0].sum()


def horseshoe_truth():
    """The same for the horseshoe, whose density is infinite at zero: weights are integrated out, scales are on a grid.

    Given the scales s_i = g λ_i of both weights, y is Gaussian and so is the posterior of the weights.
    """
    u = np.linspace(-14, 9, 231)
    s, step = np.exp(u), u[1] - u[0]
    one = stats.halfcauchy.pdf(s[:, None] / s[None, :]) / s[None, :] * s[:, None]  # p(log s | g)
    weights = np.einsum("ig,jg,g->ij", one, one, stats.halfcauchy.pdf(s, scale=0.5) * s) * step
    first, second = (grid.ravel() for grid in np.meshgrid(s, s, indexing="ij"))
    precision = X.T @ X / NOISE**2 + np.stack([first**-2.0, second**-2.0], axis=1)[:, :, None] * np.eye(2)
    covariance = np.linalg.inv(precision)
    mean = covariance @ (X.T @ Y / NOISE**2)
    log_evidence = 0.5 * np.einsum("ki,i->k", mean, X.T @ Y / NOISE**2) - np.log(first * second)
    log_evidence -= 0.5 * np.linalg.slogdet(precision)[1]
    mass = weights.ravel() * np.exp(log_evidence)
    mass /= mass.sum()
    overall = mass @ mean
    spread = np.einsum("k,kij->ij", mass, covariance + np.einsum("ki,kj->kij", mean - overall, mean - overall))
    return overall, spread, mass @ stats.norm.sf(1.0, mean[:, 0], np.sqrt(covariance[:, 0, 0]))


# One of each kind: scalar, by leaf, correlated, heavy-tailed, latent scales; `make test-all` takes all of them.
QUICK = ("laplace", "low_rank_normal", "horseshoe", "hierarchical", "scale_mixture")
EACH = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PRIORS]


@pytest.mark.parametrize("name", EACH)
def test_posterior_is_that_of_quadrature(name):
    mean, covariance, tail = horseshoe_truth() if name == "horseshoe" else truth(name)
    model = ws.Model(network(), ws.likelihoods.Gaussian(NOISE), PRIORS[name])
    # The horseshoe's half-Cauchy scales make long, narrow funnels: smaller steps, longer trajectories.
    acceptance, num_leapfrog = (0.98, 30) if name == "horseshoe" else (0.9, 10)
    method = ws.HMC(
        num_chains=16, num_draws=3000, num_warmup=500, num_leapfrog=num_leapfrog, target_acceptance=acceptance
    )
    draws = method.run(jax.random.key(0), model.condition(ws.Batch(X, Y)))
    assert draws.num_chains == 16
    values = np.stack([np.asarray(draws.params.network[leaf], np.float64) for leaf in ("a", "b")], axis=-1)
    assert_moments(values, mean, covariance)
    above = (values[..., 0] > 1.0).astype(float)
    assert abs(above.mean() - tail) < 5 * monte_carlo_error(above)


def test_augmented_and_marginal_student_t_have_one_posterior():
    """Quadrature of both priors is the same, so the two tests above say that their samplers agree."""
    np.testing.assert_allclose(truth("augmented_student_t")[1], truth("student_t")[1], rtol=1e-4)
