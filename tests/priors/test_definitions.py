"""Each prior against its definition, and what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.laws import COVARIANCE, PRIORS

import weightscape as ws
from weightscape.core import InputError


def test_scales_by_leaf_are_a_prefix_of_the_tree():
    prior = ws.priors.Normal({"a": 2.0, "b": {"weight": 0.5, "bias": 3.0}})
    params = {"a": {"w": jnp.ones((2,))}, "b": {"weight": jnp.ones(()), "bias": jnp.ones(())}}
    alone = ws.priors.Normal(2.0).log_density(params["a"]) + ws.priors.Normal(0.5).log_density(jnp.ones(()))
    np.testing.assert_allclose(prior.log_density(params), alone + ws.priors.Normal(3.0).log_density(jnp.ones(())))
    with pytest.raises(InputError, match="prefix of the parameter tree"):
        prior.log_density({"c": jnp.ones(())})


def test_fan_in_divides_the_variance_by_the_inputs():
    kernel = ws.priors.FanInNormal(scale=2.0).sample(jax.random.key(0), jnp.zeros((3, 3, 8, 5000)))
    # 360,000 entries: the error of the variance is σ² √(2/n).
    assert abs(float(kernel.var()) - 4 / 72) < 5 * (4 / 72) * np.sqrt(2 / kernel.size)


def test_correlated_normals_are_scipys(x64):
    params = {"a": jnp.asarray(0.3), "b": jnp.asarray(-1.1)}
    flat = np.array([0.3, -1.1])
    full = stats.multivariate_normal(np.zeros(2), COVARIANCE).logpdf(flat)
    np.testing.assert_allclose(PRIORS["full_normal"].log_density(params), full, rtol=1e-6)
    factor = np.array([[0.8], [-0.5]])
    low_rank = stats.multivariate_normal(np.zeros(2), factor @ factor.T + np.diag([0.09, 0.36])).logpdf(flat)
    np.testing.assert_allclose(PRIORS["low_rank_normal"].log_density(params), low_rank, rtol=1e-6)


def test_matrix_normal_is_the_kronecker_product(x64):
    rows = np.array([[1.0, 0.3, 0.0], [0.3, 0.5, 0.1], [0.0, 0.1, 2.0]])
    prior = ws.priors.MatrixNormal(rows, COVARIANCE)
    matrix = np.random.default_rng(0).normal(size=(3, 2))
    truth = stats.multivariate_normal(np.zeros(6), np.kron(rows, COVARIANCE))
    np.testing.assert_allclose(prior.log_density(jnp.asarray(matrix)), truth.logpdf(matrix.ravel()), rtol=1e-6)
    keys = jax.random.split(jax.random.key(0), 40_000)
    samples = np.asarray(jax.vmap(lambda key: prior.sample(key, jnp.zeros((3, 2))))(keys)).reshape(-1, 6)
    expected = np.kron(rows, COVARIANCE)
    error = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / len(samples))
    assert np.all(np.abs(np.cov(samples.T) - expected) < 5 * error)


def test_student_t_is_scipys_and_the_marginal_of_the_augmented_one(x64):
    points = np.linspace(-4, 4, 9)
    ours = jax.vmap(ws.priors.StudentT(3.0, 0.5).log_density)(jnp.asarray(points))
    np.testing.assert_allclose(ours, stats.t.logpdf(points, 3, scale=0.5), rtol=1e-9)
    # Integrating the latent scale out of the augmented prior gives the same density.
    prior, u = ws.priors.augmented_student_t(3.0, 0.5), jnp.linspace(-8.0, 12.0, 20_001)
    joint = lambda x: jax.vmap(lambda u: jnp.exp(prior.log_density(x, jnp.exp(u)) + u))(u)
    marginal = [float(jnp.trapezoid(joint(jnp.asarray(x)), u)) for x in points]
    np.testing.assert_allclose(np.log(marginal), stats.t.logpdf(points, 3, scale=0.5), rtol=1e-6)


@pytest.mark.parametrize("degrees", [1.0, 3.0, 30.0])
def test_student_t_samples_follow_scipys_distribution(degrees):
    samples = ws.priors.StudentT(degrees, 0.5).sample(jax.random.key(0), jnp.zeros((20_000,)))
    assert stats.kstest(np.asarray(samples), stats.t(degrees, scale=0.5).cdf).pvalue > 1e-4
    assert np.all(np.isfinite(samples))


def test_hierarchical_scales_follow_the_axes():
    tree = {"weight": jnp.zeros((4, 3)), "bias": jnp.zeros((3,))}
    shapes = lambda prior: jax.tree.map(
        jnp.shape, prior.coordinates(tree).latent, is_leaf=lambda x: hasattr(x, "shape")
    )
    scale = ws.priors.HalfNormal(1.0)
    assert shapes(ws.priors.Hierarchical(scale)) == {"weight": (1, 1), "bias": (1,)}
    assert shapes(ws.priors.Hierarchical(scale, along=(-1,))) == {"weight": (1, 3), "bias": (3,)}
    assert shapes(ws.priors.automatic_relevance(scale)) == {"weight": (4, 1), "bias": (3,)}
    assert shapes(ws.priors.Hierarchical(scale, along=ws.priors.EVERY_AXIS)) == {"weight": (4, 3), "bias": (3,)}
    assert shapes(ws.priors.Hierarchical(scale, shared=True)) == ()
    with pytest.raises(InputError, match="A shared scale must have no axes of its own"):
        ws.priors.Hierarchical(scale, along=(0,), shared=True)


def test_hierarchical_density_is_the_product(x64):
    prior = ws.priors.Hierarchical(ws.priors.Gamma(2.0, 3.0), along=(0,))
    weights, scales = np.array([[0.5, -1.0], [2.0, 0.1]]), np.array([[0.7], [1.3]])
    expected = stats.norm.logpdf(weights, 0, scales).sum() + stats.gamma.logpdf(scales, 2.0, scale=1 / 3).sum()
    np.testing.assert_allclose(prior.log_density(jnp.asarray(weights), jnp.asarray(scales)), expected, rtol=1e-6)


def test_horseshoe_density_is_the_product(x64):
    weights, g, local = np.array([0.5, -2.0]), 0.4, np.array([0.7, 3.0])
    expected = stats.norm.logpdf(weights, 0, g * local).sum() + stats.halfcauchy.logpdf(g, scale=0.5)
    expected += stats.halfcauchy.logpdf(local).sum()
    latent = {"global": jnp.asarray(g), "local": jnp.asarray(local)}
    np.testing.assert_allclose(ws.priors.Horseshoe(0.5).log_density(jnp.asarray(weights), latent), expected, rtol=1e-6)


def test_by_path_gives_each_leaf_to_its_first_pattern(x64):
    tree = {"layer0": {"weight": jnp.ones((2, 2)), "bias": jnp.ones((2,))}, "layer1": {"weight": jnp.ones((2, 1))}}
    prior = ws.priors.ByPath(
        {"*/bias": ws.priors.Normal(0.5), "layer0/*": ws.priors.Laplace(2.0), "*": ws.priors.Normal(1.0)}
    )
    expected = stats.norm.logpdf(1, 0, 0.5) * 2 + stats.laplace.logpdf(1, 0, 2.0) * 4 + stats.norm.logpdf(1) * 2
    np.testing.assert_allclose(prior.log_density(tree), expected, rtol=1e-9)
    with pytest.raises(InputError, match="must match a parameter, got 'layer7/\\*' without a match"):
        ws.priors.ByPath({"layer7/*": ws.priors.Normal(), "*": ws.priors.Normal()}).log_density(tree)
    with pytest.raises(InputError, match="must match a pattern of ByPath, got none for layer1/weight"):
        ws.priors.ByPath({"layer0/*": ws.priors.Normal()}).log_density(tree)


@pytest.mark.parametrize(
    ("prior", "values", "probabilities"),
    [
        (ws.priors.binary(0.3), [0, 1], [0.7, 0.3]),
        (ws.priors.signs(0.8), [-1, 1], [0.2, 0.8]),
        (ws.priors.ternary(0.5), [-1, 0, 1], [0.25, 0.5, 0.25]),
    ],
)
def test_discrete_weights_have_their_probabilities(prior, values, probabilities):
    np.testing.assert_allclose(
        [np.exp(prior.log_density(jnp.asarray(float(v)))) for v in values], probabilities, rtol=1e-5
    )
    assert float(prior.log_density(jnp.asarray(0.5))) == -np.inf
    samples = np.asarray(prior.sample(jax.random.key(0), jnp.zeros((20_000,))))
    for value, probability in zip(values, probabilities, strict=True):
        error = np.sqrt(probability * (1 - probability) / len(samples))
        assert abs(np.mean(samples == value) - probability) < 5 * error
    assert set(np.unique(samples)) == set(values)
    assert prior.is_discrete
    nearest = prior.coordinates(jnp.asarray([-9.0, 9.0])).params
    assert nearest.tolist() == [values[0], values[-1]]


BAD_SCALES = [
    (ws.priors.Normal, -1.0),
    (ws.priors.Gamma, 0.0),
    (ws.priors.Normal, {"a": 1.0, "b": float("nan")}),
    (ws.priors.Laplace, 0.0),
    (ws.priors.StudentT, -3.0),
    (ws.priors.Horseshoe, 0.0),
]


@pytest.mark.parametrize(("prior", "scale"), BAD_SCALES)
def test_scales_must_be_positive(prior, scale):
    with pytest.raises(InputError, match="must be positive and finite"):
        prior(scale)


def test_matrices_and_probabilities_must_make_sense():
    with pytest.raises(InputError, match="`covariance` of FullNormal must be positive definite"):
        ws.priors.FullNormal(np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(InputError, match="FullNormal is for 2 weights, got 3 weights"):
        PRIORS["full_normal"].log_density(jnp.zeros((3,)))
    with pytest.raises(InputError, match="must sum to one, got 0.8"):
        ws.priors.ScaleMixture((1.0, 0.1), (0.5, 0.3))
    with pytest.raises(InputError, match=r"for matrices of shape \(2, 2\), got \(3,\)"):
        ws.priors.MatrixNormal(COVARIANCE, COVARIANCE).log_density(jnp.zeros((3,)))
