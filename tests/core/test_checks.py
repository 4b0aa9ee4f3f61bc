"""The one form of an error."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from weightscape.core import InputError, InputTypeError, checks
from weightscape.core.keys import chain_keys, require_key


def test_errors_say_what_was_asked_what_came_and_what_to_do():
    with pytest.raises(InputError) as caught:
        checks.require(False, "`step` must be even", 3, "Pass 4.")
    assert str(caught.value) == "`step` must be even, got 3. Pass 4."
    assert isinstance(caught.value, ValueError)


def test_unknown_names_list_the_known_ones():
    with pytest.raises(InputError, match=r"got 'relo'. Did you mean 'relu'\? Known: relu, tanh."):
        checks.require_known("`activation`", "relo", {"tanh", "relu"})


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, np.array([1.0, -2.0])])
def test_positive_refuses(value):
    with pytest.raises(InputError, match="`x` must be positive and finite"):
        checks.require_positive("`x`", value)


def test_positive_lets_traced_values_through():
    def traced(value):
        checks.require_positive("`x`", value)
        return value

    assert float(jax.jit(traced)(jnp.asarray(-1.0))) == -1.0


def test_finite_names_the_first_bad_entry():
    with pytest.raises(InputError, match=r"2 non-finite entries, the first at index \(0, 1\)"):
        checks.require_finite("`x`", np.array([[0.0, np.nan], [np.inf, 1.0]]))


def test_counts_and_fractions(unchecked):
    with pytest.raises(InputTypeError, match="must be a whole number, got 2.5"):
        checks.require_count("`n`", 2.5)
    with pytest.raises(InputTypeError, match="must be a whole number, got True"):
        checks.require_count("`n`", True)
    with pytest.raises(InputError, match="strictly between 0 and 1, got 1.0"):
        checks.require_fraction("`level`", 1.0)


def test_keys_must_be_typed_and_single(unchecked):
    require_key(jax.random.key(0), "run")
    for wrong in (0, jax.random.PRNGKey(0), jax.random.split(jax.random.key(0))):
        with pytest.raises(InputTypeError, match=r"Pass `jax.random.key\(seed\)`"):
            require_key(wrong, "run")


def test_a_chains_key_does_not_depend_on_the_number_of_chains():
    few, many = chain_keys(jax.random.key(0), 2), chain_keys(jax.random.key(0), 5)
    assert np.array_equal(jax.random.key_data(few), jax.random.key_data(many)[:2])
    assert len(np.unique(np.asarray(jax.random.key_data(many)), axis=0)) == 5
