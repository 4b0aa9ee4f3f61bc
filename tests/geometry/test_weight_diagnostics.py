"""R̂ and marginals of single weights are ArviZ's, and see that permuted chains disagree."""

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.geometry.scrambled import known

from weightscape.core import InputError
from weightscape.geometry.weight_diagnostics import diagnose_weights, marginals


@pytest.fixture(autouse=True)
def _double(x64):
    """The draws that other tests use."""


def test_the_numbers_are_those_of_arviz():
    draws = known(inferred_noise=True).draws
    found = diagnose_weights(draws)
    assert list(found.by_leaf) == [
        "network/layer0/bias", "network/layer0/weight", "network/layer1/bias", "network/layer1/weight",
        "likelihood/scale",
    ]  # fmt: skip
    values = np.asarray(draws.params.network["layer0"]["weight"], np.float64).reshape(4, 50, 8)
    leaf = found.by_leaf["network/layer0/weight"]
    np.testing.assert_array_equal(leaf.places, np.arange(8))
    np.testing.assert_allclose(leaf.convergence.rhat, arviz_stats.rhat(values))
    np.testing.assert_allclose(leaf.convergence.bulk_ess, arviz_stats.ess(values, method="bulk"))
    assert found.rhat.shape == found.bulk_ess.shape == (18,)
    few = diagnose_weights(draws, max_weights=3).by_leaf["network/layer0/weight"]
    np.testing.assert_array_equal(few.places, [0, 4, 7])
    np.testing.assert_array_equal(few.convergence.rhat, leaf.convergence.rhat[[0, 4, 7]])
    assert "network/layer0/weight" in str(found) and len(str(found).splitlines()) == 7


def test_chains_in_other_modes_disagree_in_weights_and_the_same_chains_agree_in_one():
    made = known()
    element = jax.vmap(made.symmetry.random)(jax.random.split(jax.random.key(3), 4))
    by_chain = jax.tree.map(lambda leaf: jnp.repeat(leaf[:, None], 50, axis=1), element)
    apart = diagnose_weights(made.symmetry.apply(made.draws, by_chain))
    together = diagnose_weights(made.draws)
    assert np.median(apart.rhat) > 1.5 and apart.share_settled < 0.2
    # 200 independent draws of one density: R̂ of split chains of 25 is 1 within some hundredths.
    assert np.max(together.rhat) < 1.15 and np.min(together.bulk_ess) > 80
    assert together.share_settled > apart.share_settled


def test_marginals_are_the_values_of_chosen_weights():
    draws = known().draws
    found = marginals(draws, {"network/layer0/weight": (0, 5), "network/layer1/bias": (0,)})
    assert list(found) == ["network/layer0/weight[0]", "network/layer0/weight[5]", "network/layer1/bias[0]"]
    np.testing.assert_array_equal(
        found["network/layer0/weight[5]"], draws.params.network["layer0"]["weight"][:, :, 1, 1]
    )
    with pytest.raises(InputError, match="known name, got 'network/layer2/bias'"):
        marginals(draws, {"network/layer2/bias": (0,)})
    with pytest.raises(InputError, match="from 0 to 7, got 8"):
        marginals(draws, {"network/layer0/weight": (8,)})


def test_what_is_no_chain_is_refused(unchecked):
    draws = known().draws
    with pytest.raises(InputError, match="at least 4 draws"):
        diagnose_weights(draws[:, :3])
    weighted = type(draws)(
        draws.params, draws.log_density, draws.model, None, draws.example, log_weights=np.zeros((4, 50))
    )
    with pytest.raises(InputError, match="must weigh the same"):
        diagnose_weights(weighted)
