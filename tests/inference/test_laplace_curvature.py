"""Curvature in every structure against brute force, Kronecker factors where exact, gradients of the evidence."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import stats
from scipy.optimize import minimize
from tests.known import linear

import weightscape as ws
from weightscape.core import InputError
from weightscape.draws import point
from weightscape.inference import EvidenceTuning, Laplace, LaplaceEvidence
from weightscape.inference.laplace import products
from weightscape.inference.laplace.curvature import EmpiricalFisher, ExactHessian, GaussNewton
from weightscape.inference.laplace.kronecker_factors import kronecker_blocks
from weightscape.inference.laplace.layer_diagonal import layered_diagonal
from weightscape.inference.laplace.neighbourhood import Neighbourhood
from weightscape.inference.laplace.structures import KroneckerStructure, LowRankStructure
from weightscape.networks import canonical_indices, find_linear_layers

KEY = jax.random.key(0)


@pytest.fixture(autouse=True)
def _double(x64):
    """Exactness is claimed in double precision."""


def neighbourhood(model, x, y) -> Neighbourhood:
    posterior = model.condition(ws.Batch(x, y))
    return Neighbourhood.of(posterior, posterior.sample_prior_position(jax.random.key(2)))


def vectors(num=7):
    return np.random.default_rng(1).normal(size=(num, 3))


MLP = lambda: ws.networks.MLP(hidden=(4,), activation="tanh")
PROBLEMS = {
    "gaussian": lambda g: (ws.likelihoods.Gaussian(0.4), g.normal(size=7)),
    "two_targets": lambda g: (ws.likelihoods.Gaussian((0.4, 1.5)), g.normal(size=(7, 2))),
    "inferred_noise": lambda g: (ws.likelihoods.Gaussian(ws.priors.Gamma(2.0, 2.0)), g.normal(size=7)),
    "student_t": lambda g: (ws.likelihoods.StudentT(4.0, 0.5), g.normal(size=7)),
    "heteroscedastic": lambda g: (ws.likelihoods.HeteroscedasticGaussian(), g.normal(size=7)),
    "poisson": lambda g: (ws.likelihoods.Poisson(), g.integers(0, 4, 7).astype(float)),
    "categorical": lambda g: (ws.likelihoods.Categorical(3), g.integers(0, 3, 7)),
    "bernoulli": lambda g: (ws.likelihoods.Bernoulli(), g.integers(0, 2, 7)),
}


def problem(name, network=None, prior=None):
    likelihood, y = PROBLEMS[name](np.random.default_rng(5))
    return neighbourhood(ws.Model(network or MLP(), likelihood, prior or ws.priors.Normal(0.8)), vectors(), y)


def brute_force(around, curvature) -> np.ndarray:
    """H from derivatives of the whole model by jax, one point at a time, on the tree and not the flat vector."""
    posterior = around.posterior
    flat, unravel = ravel_pytree(around.layout.unflatten(around.location))
    pointwise = lambda v: posterior.pointwise_log_likelihood(posterior.constrain(unravel(v)))
    if isinstance(curvature, ExactHessian):
        return -np.asarray(jax.hessian(lambda v: jnp.sum(pointwise(v)))(flat))
    if isinstance(curvature, EmpiricalFisher):
        gradients = np.asarray(jax.jacobian(pointwise)(flat))
        return gradients.T @ gradients

    def coordinates(v):
        parameters = posterior.constrain(unravel(v))
        outputs = posterior.model.network.apply(parameters.network, posterior.x)
        own = [jnp.ravel(leaf) for leaf in jax.tree.leaves(parameters.likelihood)]
        return outputs, own

    jacobian, own_jacobian = jax.jacobian(coordinates)(flat)
    outputs, _ = coordinates(flat)
    roots = posterior.model.likelihood.information_root(outputs, posterior.constrain(unravel(flat)).likelihood)
    total = 0
    for i in range(len(outputs)):
        rows = np.concatenate([jacobian[i], *own_jacobian]).T @ np.asarray(roots[i])
        total = total + rows @ rows.T
    return total


ALL = [(name, curvature) for name in PROBLEMS for curvature in (GaussNewton(), EmpiricalFisher(), ExactHessian())]
QUICK = [("inferred_noise", GaussNewton), ("categorical", EmpiricalFisher)]
CASES = [
    pytest.param(
        name,
        curvature,
        id=f"{name}-{type(curvature).__name__}",
        marks=() if (name, type(curvature)) in QUICK else pytest.mark.slow,
    )
    for name, curvature in ALL
]


@pytest.mark.parametrize(("name", "curvature"), CASES)
def test_products_are_those_of_brute_force(name, curvature):
    around = problem(name)
    truth = brute_force(around, curvature)
    np.testing.assert_allclose(products.dense(curvature, around), truth, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(products.diagonal(curvature, around), np.diag(truth), rtol=1e-7, atol=1e-9)
    vector = np.random.default_rng(0).normal(size=len(truth))
    np.testing.assert_allclose(
        products.times(curvature, around, jnp.asarray(vector)), truth @ vector, rtol=1e-7, atol=1e-8
    )
    if not isinstance(curvature, ExactHessian):
        np.testing.assert_allclose(layered_diagonal(curvature, around), np.diag(truth), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["categorical", pytest.param("gaussian", marks=pytest.mark.slow)])
def test_gauss_newton_is_the_hessian_of_the_linearised_network(name):
    """For likelihoods in their natural form: −∇² log p(y | f + J v) at v = 0."""
    around = problem(name)
    posterior, centre = around.posterior, around.centre()
    outputs, jacobian = around.coordinates(centre, posterior.x), jax.jacobian(around.coordinates)(centre, posterior.x)
    linearised = lambda v: jnp.sum(
        posterior.model.likelihood.log_density(outputs + jacobian @ (v - centre), posterior.y)
    )
    np.testing.assert_allclose(
        products.dense(GaussNewton(), around), -jax.hessian(linearised)(centre), rtol=1e-7, atol=1e-9
    )


def test_chunks_of_points_add_up(monkeypatch):
    around = problem("categorical")
    whole = [products.dense(GaussNewton(), around), layered_diagonal(GaussNewton(), around)]
    factors = [block.information for block in kronecker_blocks(GaussNewton(), around)[0]]
    jax.clear_caches()
    monkeypatch.setattr(products, "_CHUNK_BYTES", 6000)  # a few points at a time, of seven
    np.testing.assert_allclose(products.dense(GaussNewton(), around), whole[0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(layered_diagonal(GaussNewton(), around), whole[1], rtol=1e-10, atol=1e-12)
    again = [block.information for block in kronecker_blocks(GaussNewton(), around)[0]]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12), factors, again)
    jax.clear_caches()


def images(num=3, side=4, channels=2):
    return np.random.default_rng(3).normal(size=(num, side, side, channels))


CONVOLUTIONS = {
    "same": ws.networks.ConvNet(channels=(3,), kernel=3, pool=None, hidden=()),
    "pooled": ws.networks.ConvNet(channels=(3,), kernel=2, hidden=(4,)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_the_diagonal_of_convolutions_is_that_of_brute_force(name):
    model = ws.Model(CONVOLUTIONS[name], ws.likelihoods.Categorical(2), ws.priors.Normal(1.0))
    around = neighbourhood(model, images(), np.array([0, 1, 1]))
    truth = np.diag(brute_force(around, GaussNewton()))
    np.testing.assert_allclose(layered_diagonal(GaussNewton(), around), truth, rtol=1e-7, atol=1e-9)


def dense_of(covariance, size) -> np.ndarray:
    return np.asarray(jax.vmap(covariance.times)(jnp.eye(size)))


def test_kronecker_is_exact_for_a_linear_layer_with_the_same_noise_everywhere():
    network = ws.networks.MLP(hidden=())
    prior = ws.priors.Normal({"layer0": {"weight": 0.8, "bias": 2.0}})
    around = problem("two_targets", network, prior)
    likelihood = ws.likelihoods.Gaussian(0.4)
    around = problem_with(around, likelihood)
    information = KroneckerStructure().fit(GaussNewton(), around).information
    precision = np.concatenate([np.full(2, 0.25), np.full(6, 1 / 0.64)])  # two biases, then 3 × 2 weights
    truth = brute_force(around, GaussNewton()) + np.diag(precision)
    covariance = information.covariance(jnp.asarray(precision))
    np.testing.assert_allclose(dense_of(covariance, 8), np.linalg.inv(truth), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(information.log_determinant(jnp.asarray(precision)), np.linalg.slogdet(truth)[1])


def problem_with(around, likelihood):
    model = ws.Model(around.posterior.model.network, likelihood, around.posterior.model.prior)
    return dataclasses.replace(around, posterior=dataclasses.replace(around.posterior, model=model))


def test_kronecker_factors_of_a_hidden_layer_are_sums_of_outer_products():
    around = problem("categorical")
    blocks, left_out = kronecker_blocks(GaussNewton(), around)
    assert left_out == {}
    params, x = around.parameters().network, np.asarray(around.posterior.x)
    inputs = np.concatenate([x, np.ones((7, 1))], axis=1)
    hidden = np.tanh(inputs @ np.concatenate([params["layer0"]["weight"], params["layer0"]["bias"][None]]))
    outputs = around.coordinates(around.centre(), around.posterior.x)
    roots = np.asarray(around.posterior.model.likelihood.information_root(outputs))
    back = np.asarray(params["layer1"]["weight"])[None] * (1 - hidden**2)[:, :, None]  # ∂ outputs / ∂ pre-activations
    gradients = {"layer0/weight": np.einsum("pho,por->phr", back, roots), "layer1/weight": roots}
    sources = {"layer0/weight": inputs, "layer1/weight": np.concatenate([hidden, np.ones((7, 1))], axis=1)}
    for block in blocks:
        source, gradient = sources[block.name], gradients[block.name]
        np.testing.assert_allclose(block.information.inputs, source.T @ source, rtol=1e-9)
        truth = np.einsum("phr,pkr->hk", gradient, gradient) / 7
        np.testing.assert_allclose(block.information.outputs, truth, rtol=1e-8, atol=1e-12)


def test_a_bias_may_be_a_block_of_its_own():
    around = problem_with(problem("two_targets", ws.networks.MLP(hidden=())), ws.likelihoods.Gaussian(0.4))
    information, notes = KroneckerStructure(joint_bias=False).fit(GaussNewton(), around)
    assert notes["kronecker"] == ["layer0/weight", "layer0/bias"]
    truth = brute_force(around, GaussNewton()) + np.eye(8)
    truth[:2, 2:] = truth[2:, :2] = 0  # two biases come first
    found = dense_of(information.covariance(jnp.ones(8)), 8)
    np.testing.assert_allclose(found, np.linalg.inv(truth), rtol=1e-7, atol=1e-12)


def test_kronecker_of_a_convolution_at_one_place_is_exact():
    """A kernel as large as the image has one position, and behind it all is linear: brute force agrees."""
    kernel = lambda key, x: {"kernel": jax.random.normal(key, (2, 2, 2, 3)), "bias": jnp.zeros(3)}

    def apply(params, x):
        z = jax.lax.conv_general_dilated(
            x, params["kernel"], (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return z.reshape(len(x), 3) + params["bias"][None]

    model = ws.Model(ws.networks.Function(kernel, apply), ws.likelihoods.Gaussian(0.5), ws.priors.Normal(1.0))
    around = neighbourhood(model, images(5, side=2), np.random.default_rng(0).normal(size=(5, 3)))
    fit = KroneckerStructure().fit(GaussNewton(), around)
    assert fit.notes["kronecker"] == ["kernel"]
    truth = brute_force(around, GaussNewton()) + np.eye(27)
    found = dense_of(fit.information.covariance(jnp.ones(27)), 27)
    np.testing.assert_allclose(found, np.linalg.inv(truth), rtol=1e-6, atol=1e-10)


def test_kronecker_of_a_convolution_averages_over_places():
    """H ≈ Σ a aᵀ ⊗ Σ g gᵀ / (N S) (Grosse & Martens 2016), with patches cut out and gradients taken by hand."""
    network = ws.networks.ConvNet(channels=(2,), kernel=2, padding="valid", pool=None, hidden=(), activation="tanh")
    model = ws.Model(network, ws.likelihoods.Gaussian(0.5), ws.priors.Normal(1.0))
    around = neighbourhood(model, images(4, side=3), np.random.default_rng(0).normal(size=4))
    block = kronecker_blocks(GaussNewton(), around)[0][0]
    params, x = around.parameters().network, np.asarray(around.posterior.x)
    patches = np.stack([x[:, i : i + 2, j : j + 2] for i in range(2) for j in range(2)], axis=1).reshape(4, 4, 8)
    layer = find_linear_layers(network, params, x[:1]).layers[0]
    order = canonical_indices(layer)[:, 0] // 2  # which input of the kernel, flattened, each canonical row is
    rows = np.concatenate([patches[..., order], np.ones((4, 4, 1))], axis=2).reshape(16, 9)
    np.testing.assert_allclose(block.information.inputs, rows.T @ rows, rtol=1e-9)

    def output(shift, patches):
        z = patches @ params["conv0"]["kernel"].reshape(8, 2) + params["conv0"]["bias"][None] + shift
        return (jnp.tanh(z).reshape(-1) @ params["output"]["weight"] + params["output"]["bias"])[0]

    gradients = np.stack([jax.grad(output)(jnp.zeros((4, 2)), jnp.asarray(one)) for one in patches]) / 0.5
    truth = np.einsum("psh,psk->hk", gradients, gradients) / (4 * 4)
    np.testing.assert_allclose(block.information.outputs, truth, rtol=1e-8)


def test_leaves_outside_of_linear_layers_get_their_diagonal_and_are_named():
    network = ws.networks.LSTM(hidden=2)
    model = ws.Model(network, ws.likelihoods.Categorical(2), ws.priors.Normal(1.0))
    around = neighbourhood(model, np.random.default_rng(0).normal(size=(3, 4, 2)), np.array([0, 1, 1]))
    information, notes = KroneckerStructure().fit(GaussNewton(), around)
    assert notes["kronecker"]
    assert notes["diagonal"]
    truth, prior = brute_force(around, GaussNewton()), np.ones(around.num_free)
    precision = np.linalg.inv(dense_of(information.covariance(jnp.asarray(prior)), around.num_free))
    for path in notes["diagonal"]:
        where = around.layout.places(f"network/{path}")
        expected = np.diag(np.diag(truth[where, where]) + 1)
        np.testing.assert_allclose(precision[where, where], expected, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_under_latent_scales_kronecker_falls_back_to_the_diagonal():
    prior = ws.priors.Hierarchical(ws.priors.HalfNormal(1.0))
    around = problem("gaussian", prior=prior)
    information, notes = KroneckerStructure().fit(GaussNewton(), around)
    assert set(notes["diagonal"].values()) == {"a product with latent scales of the prior"}
    assert not notes["kronecker"]
    truth = np.diag(brute_force(around, GaussNewton()))
    found = np.asarray(information.covariance(jnp.ones(around.num_free)).precision_diagonal()) - 1
    np.testing.assert_allclose(found, truth, rtol=1e-7, atol=1e-9)


SLOW = pytest.mark.slow
STRUCTURES = ["full", "kronecker", *(pytest.param(s, marks=SLOW) for s in ("by_layer", "diagonal"))]
STRUCTURES = [*STRUCTURES, pytest.param(LowRankStructure(rank=4), marks=SLOW, id="low_rank")]


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
@pytest.mark.parametrize("curvature", ["gauss_newton", pytest.param("fisher", marks=pytest.mark.slow)])
def test_gradients_of_the_evidence_are_finite_differences(structure, curvature):
    around = problem("gaussian")
    evidence = LaplaceEvidence.at(
        around.posterior, around.layout.unflatten(around.location), structure=structure, curvature=curvature
    )

    def of(log_scales):
        first, second, noise = jnp.exp(log_scales)
        prior = ws.priors.Normal({"layer0": first, "layer1": second})
        return evidence(prior, ws.likelihoods.Gaussian(noise))

    here = jnp.log(jnp.asarray([0.8, 0.8, 0.4]))
    gradient, step = jax.grad(of)(here), 1e-5
    for i in range(3):
        shift = step * jnp.eye(3)[i]
        # A central difference errs by step²/6 times a third derivative of order 10², and by rounding / step.
        np.testing.assert_allclose(
            gradient[i], (of(here + shift) - of(here - shift)) / (2 * step), rtol=1e-5, atol=1e-5
        )
    untouched = evidence(ws.priors.Normal(0.8))
    np.testing.assert_allclose(of(here), untouched, rtol=1e-10)
    found = Laplace(structure, curvature).run(
        KEY, around.posterior, init=point(around.posterior, around.layout.unflatten(around.location))
    )
    np.testing.assert_allclose(found.log_evidence, untouched, rtol=1e-8)


@pytest.mark.parametrize("rounds", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_tuned_scales_have_the_largest_exact_evidence(rounds):
    """For a linear model with the mode found anew each round, the fixed point is the maximum of the exact evidence."""
    known = linear(noise=0.5, prior_scale=3.0)

    def exact(log_scales):
        prior, noise = np.exp(log_scales)
        marginal = noise**2 * np.eye(40) + prior**2 * known.x @ known.x.T
        return -stats.multivariate_normal(np.zeros(40), marginal).logpdf(known.y)

    best = minimize(exact, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10})
    tuning = EvidenceTuning("global", noise=True, rounds=rounds)
    found = Laplace("full", tuning=tuning).run(KEY, known.posterior)
    scales = [3.0 * found.facts["tuned"]["prior"], 0.5 * found.facts["tuned"]["noise"]]
    model = found.header.model
    np.testing.assert_allclose(jax.tree.leaves(model.prior.scale)[0], scales[0], rtol=1e-9)
    np.testing.assert_allclose(model.likelihood.scale, scales[1], rtol=1e-9)
    # With the mode of other scales held, the evidence is a lower bound that is tight to first order.
    assert -best.fun - 0.05 < float(found.log_evidence) < -best.fun + 1e-6
    if rounds > 1:
        np.testing.assert_allclose(scales, np.exp(best.x), rtol=1e-3)
        np.testing.assert_allclose(found.log_evidence, -best.fun, atol=1e-5)


def test_layers_are_tuned_apart_and_only_where_the_prior_is_normal():
    around = problem("gaussian")
    here = point(around.posterior, around.layout.unflatten(around.location))
    method = Laplace("kronecker", tuning=EvidenceTuning("by_layer"))
    found = method.run(KEY, around.posterior, init=here)
    factors = found.facts["tuned"]
    assert set(factors) == {"prior of layer0", "prior of layer1"}
    scales = found.header.model.prior.scale
    np.testing.assert_allclose(scales["layer1"]["weight"], 0.8 * factors["prior of layer1"], rtol=1e-9)
    evidence = LaplaceEvidence.at(found.posterior, around.layout.unflatten(around.location), structure="kronecker")
    gradient = jax.grad(lambda t: evidence(ws.priors.Normal(jax.tree.map(lambda s: s * jnp.exp(t), scales))))(0.0)
    assert abs(float(gradient)) < 1e-3
    other = problem("gaussian", prior=ws.priors.StudentT(4.0, 1.0))
    with pytest.raises(InputError, match="must be a normal one, got StudentT"):
        method.run(KEY, other.posterior, init=point(other.posterior, other.layout.unflatten(other.location)))
    inferred = problem("inferred_noise")
    with pytest.raises(InputError, match="one fixed number of a Gaussian"):
        Laplace(tuning=EvidenceTuning(noise=True)).run(
            KEY, inferred.posterior, init=point(inferred.posterior, inferred.layout.unflatten(inferred.location))
        )


def test_low_rank_is_the_top_of_the_spectrum():
    around = problem("categorical")
    truth = np.linalg.eigvalsh(brute_force(around, GaussNewton()))
    fit = LowRankStructure(rank=5).fit(GaussNewton(), around)
    factor = np.asarray(fit.information.factor)
    np.testing.assert_allclose(np.linalg.eigvalsh(factor.T @ factor), truth[-5:], rtol=1e-8)
    product = brute_force(around, GaussNewton()) @ factor
    np.testing.assert_allclose(product, factor * np.sum(factor**2, axis=0), rtol=1e-6, atol=1e-8)


def test_a_new_number_compiles_nothing(monkeypatch):
    around = problem("gaussian")
    traces = []
    original = ws.networks.MLP.apply
    monkeypatch.setattr(ws.networks.MLP, "apply", lambda self, p, x: (traces.append(1), original(self, p, x))[1])
    for scale in (0.3, 0.4, 0.5):
        changed = problem_with(around, ws.likelihoods.Gaussian(scale))
        before = len(traces)
        products.dense(GaussNewton(), changed)
        products.times(GaussNewton(), changed, changed.centre())
        if scale > 0.3:
            assert len(traces) == before
