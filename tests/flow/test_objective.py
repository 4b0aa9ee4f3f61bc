"""The regression behind flow matching, on Gaussians whose velocity field is known."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.flow import gaussians

from weightscape.flow import FixedSteps, Straight, Trigonometric, carry
from weightscape.flow.objective import LogitNormalTimes, Objective, OfTarget, OfVelocity, UniformTimes

pytestmark = pytest.mark.usefixtures("x64")
PATHS = [Straight(), Trigonometric()]
NUM_PAIRS = 40_000


def pairs(key):
    key_source, key_target = jax.random.split(key)
    sources = jax.random.normal(key_source, (NUM_PAIRS, 3))
    normal = jax.random.normal(key_target, (NUM_PAIRS, 3))
    return sources, jnp.asarray(gaussians.MEAN)[None] + normal @ jnp.asarray(gaussians.FACTOR).T


@pytest.mark.parametrize("path", PATHS, ids=lambda path: type(path).__name__)
@pytest.mark.parametrize("prediction", [OfVelocity(), OfTarget()], ids=lambda each: type(each).__name__)
def test_single_paths_have_the_gradient_of_the_velocity_field(path, prediction):
    """∇E‖f − y_t‖² = ∇E‖f − E[y_t | x_t]‖² for a model that is far from both, within the Monte-Carlo error."""
    objective = Objective(path, prediction)
    known = gaussians.velocity(path) if isinstance(prediction, OfVelocity) else gaussians.target(path)

    def model(numbers, time, x):
        return numbers["matrix"] @ x + time * numbers["shift"]

    class Known(type(prediction)):
        def wanted(self, path, time, source, target):
            at = path.coefficients(time)
            return known(time, at.a * source + at.b * target)

    numbers = {"matrix": 0.3 * jnp.eye(3) + 0.1, "shift": jnp.asarray([1.0, 0.0, -1.0])}
    sources, targets = pairs(jax.random.key(0))

    @eqx.filter_jit
    def differences(numbers):
        def of(objective, numbers, key, source, target):
            return objective.loss(key, lambda time, x: model(numbers, time, x), source[None], target[None])

        slope = lambda objective: jax.vmap(jax.grad(of, argnums=1), in_axes=(None, None, 0, 0, 0))(
            objective, numbers, jax.random.split(jax.random.key(1), NUM_PAIRS), sources, targets
        )
        return jax.tree.map(jnp.subtract, slope(objective), slope(Objective(path, Known())))

    for leaf in jax.tree.leaves(differences(numbers)):
        error = np.std(leaf, axis=0) / NUM_PAIRS**0.5
        assert np.all(np.abs(np.mean(leaf, axis=0)) < 5.5 * error)
        assert np.all(error > 0)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: type(path).__name__)
def test_a_predicted_target_keeps_the_spread(path):
    """The known conditional mean of the target carries N(0, 1) to N(m, Σ); x̂₁ − x₀ as velocity would lose spread."""
    velocity = Objective(path, OfTarget()).velocity(gaussians.target(path))
    run = eqx.filter_jit(lambda x: carry(FixedSteps(400, diffrax.Heun()), velocity, x))
    offset = run(jnp.zeros(3))
    matrix = jnp.stack([run(row) - offset for row in jnp.eye(3)], axis=1)
    # The last thousandth of the way goes with a velocity that stands still: an error of 1e-3 at most.
    np.testing.assert_allclose(offset, gaussians.MEAN, atol=4e-3)
    np.testing.assert_allclose(matrix @ matrix.T, gaussians.COVARIANCE, atol=8e-3)


def test_times_have_their_distributions():
    keys = jax.random.split(jax.random.key(3), 20_000)
    times = LogitNormalTimes(0.5, 0.8)
    logits = jax.vmap(lambda key: jax.scipy.special.logit(times.sample(key)))(keys)
    # A Kolmogorov–Smirnov test fails a right program once in a million.
    assert stats.kstest(np.asarray(logits), stats.norm(0.5, 0.8).cdf).pvalue > 1e-6
    assert stats.kstest(np.asarray(jax.vmap(UniformTimes().sample)(keys)), "uniform").pvalue > 1e-6


def test_the_loss_is_zero_at_the_truth_and_counts_each_weight_alike():
    """With one source and one target the velocity is known at every time."""
    source, target = jnp.asarray([[1.0, 2.0]]), jnp.asarray([[0.0, -1.0]])
    loss = lambda model: Objective(Straight()).loss(jax.random.key(0), model, source, target)
    assert float(loss(lambda time, x: (target - source)[0])) < 1e-30
    np.testing.assert_allclose(loss(lambda time, x: jnp.zeros(2)), (1 + 9) / 2)


def test_each_pair_has_a_time_of_its_own():
    """A model that says t, where it should say 0: the loss is the mean of t² over uniform times, 1/3."""
    nothing, number = jnp.zeros((4000, 2)), 4000
    loss = Objective(Straight()).loss(jax.random.key(5), lambda time, x: time * jnp.ones(2), nothing, nothing)
    # t² has the variance 1/5 − 1/9.
    assert abs(float(loss) - 1 / 3) < 5.5 * (4 / 45 / number) ** 0.5
