"""Divergences weight by weight are the closed form, and do not depend on the order of the hidden units."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.geometry.scrambled import draws_at, known

from weightscape.core import InputError
from weightscape.core.layout import Layout
from weightscape.geometry.compact import compact
from weightscape.geometry.compare_weights import compare_weights
from weightscape.geometry.weight_moments import flat_positions
from weightscape.inference import Diagonal, Gaussian, kl_divergence


@pytest.fixture(autouse=True)
def _double(x64):
    """Exactness is claimed in double precision."""


def one_reference(made):
    """The network at the known mean."""
    return draws_at(made.posterior, made.mean[None, None])


def test_draws_in_any_order_have_the_divergence_of_their_moments():
    made = known(inferred_noise=True)
    noise = np.random.default_rng(9).normal(size=(4, 50, len(made.mean)))
    shifted = draws_at(made.posterior, made.mean + 0.05 + 1.5 * made.scale * noise)
    element = made.symmetry.random(jax.random.key(5))
    found = compare_weights(
        {"base": made.scrambled, "other": made.symmetry.apply(shifted, element)}, "base", reference=one_reference(made)
    )
    of, to = flat_positions(shifted), flat_positions(made.draws)
    ratio = of.var(axis=0) / to.var(axis=0)
    shift = (of.mean(axis=0) - to.mean(axis=0)) ** 2 / to.var(axis=0, ddof=1)
    np.testing.assert_allclose(found.divergence["other"], 0.5 * (ratio + shift - 1 - np.log(ratio)), rtol=1e-9)
    np.testing.assert_array_equal(found.divergence["base"], 0)
    totals = found.totals("other")
    np.testing.assert_allclose(totals["all"], found.divergence["other"].sum())
    np.testing.assert_allclose(sum(totals.values()), 2 * totals["all"])
    assert found.by_leaf("other")["network/layer0/weight"].shape == (2, 4)
    lines = str(found).splitlines()
    assert lines[0].split() == ["KL", "in", "nats", "weights", "other"] and len(lines) == 8
    assert lines[2].split()[:2] == ["network/layer0/weight", "8"] and lines[-1].endswith("to base")


def test_gaussians_are_moved_whole_with_their_variances():
    made = known(inferred_noise=True)
    layout = Layout.of(made.posterior.start_position(jax.random.key(0)))
    position = layout.unflatten(jnp.asarray(made.mean))
    base = Gaussian.over(made.posterior, position, Diagonal(made.scale))
    wide = Gaussian.over(made.posterior, jax.tree.map(lambda leaf: leaf + 0.03, position), Diagonal(1.7 * made.scale))
    element = made.symmetry.random(jax.random.key(8))
    move = lambda tree: tree._replace(network=made.symmetry.apply(tree.network, element))
    mean, spread = move(wide.mean), move(layout.unflatten(jnp.asarray(1.7 * made.scale)))
    signed = jax.tree.map(lambda leaf: leaf, mean)
    flipped = dict(signed.network)  # tanh is odd: the first unit with its sign changed is the same unit
    flipped["layer0"] = {name: leaf.at[..., 0].multiply(-1) for name, leaf in signed.network["layer0"].items()}
    flipped["layer1"] = {**signed.network["layer1"], "weight": signed.network["layer1"]["weight"].at[0].multiply(-1)}
    moved = Gaussian.over(made.posterior, mean._replace(network=flipped), Diagonal(layout.flatten(spread)))
    found = compare_weights({"base": base, "moved": moved}, "base")
    truth = float(kl_divergence(wide, base))
    np.testing.assert_allclose(found.totals("moved")["all"], truth, rtol=1e-9)
    np.testing.assert_allclose(found.found["moved"].variance, (1.7 * made.scale) ** 2, rtol=1e-9)
    assert float(kl_divergence(moved, base)) > 10 * truth


def test_a_compact_posterior_does_not_diverge_from_its_own_draws():
    made = known()
    gaussian = compact(made.scrambled, one_reference(made))
    np.testing.assert_allclose(gaussian.location, flat_positions(made.draws).mean(axis=0), rtol=1e-9)
    found = compare_weights({"draws": made.scrambled, "compact": gaussian}, "draws")
    np.testing.assert_allclose(found.divergence["compact"], 0, atol=1e-9)


def test_what_cannot_be_compared_says_why():
    made = known()
    with pytest.raises(InputError, match="`base` of compare_weights must be a known name"):
        compare_weights({"a": made.draws}, "b")
    still = draws_at(made.posterior, np.repeat(made.mean[None, None], 4, axis=1))
    with pytest.raises(InputError, match=r"of still must vary, got weights that do not in network/layer0/bias"):
        compare_weights({"a": made.draws, "still": still}, "a")
    found = compare_weights({"a": made.draws, "still": still}, "a", floor=0.5)
    assert np.all(np.isfinite(found.divergence["still"]))
