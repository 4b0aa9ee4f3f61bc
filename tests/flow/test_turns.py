"""Rows in turn: which a look takes, that all are seen on the way, and what a field sees of them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.flow import tiny
from tests.flow.test_revised import flow_over, posterior

from weightscape.core import InputError
from weightscape.flow import Euclidean, Revised
from weightscape.flow.fields import Sight
from weightscape.flow.source import PriorSource
from weightscape.flow.target import Target
from weightscape.flow.turns import at_rows, in_turn
from weightscape.metanet.fixed import Fixed

pytestmark = pytest.mark.usefixtures("x64")
NUM_ROWS = 12
KEY = jax.random.key(0)


def target():
    given = posterior()
    return Target(given, PriorSource.of(given))


def numbers_of(seen, whole):
    """Which rows of the data those in sight are."""
    return [int(np.flatnonzero(np.all(np.asarray(whole.x) == row, axis=1))[0]) for row in np.asarray(seen.x)]


@pytest.mark.parametrize("count", [1, 3, 4, 5, 11])
@pytest.mark.parametrize("look", [0, 1])
def test_on_the_way_each_look_passes_through_all_rows(count, look):
    """Between the jumps of ⌊B t⌋ sets stay; rows are seen as often as each other where sets fill the data."""
    whole, num_sets = target(), -(-NUM_ROWS // count)
    middles = (np.arange(num_sets) + 0.5) / num_sets
    sets = [numbers_of(in_turn(whole, count, t, jnp.asarray(look), 2).posterior, whole.posterior) for t in middles]
    assert all(len(set(rows)) == count for rows in sets)
    seen = np.bincount(np.concatenate(sets), minlength=NUM_ROWS)
    assert np.all(seen >= 1) and np.all(seen <= (1 if NUM_ROWS % count == 0 else 2))
    early = in_turn(whole, count, middles[0] + 0.4 / num_sets, jnp.asarray(look), 2)
    assert numbers_of(early.posterior, whole.posterior) == sets[0]
    assert len({tuple(rows) for rows in sets}) == num_sets


@pytest.mark.parametrize(("count", "num_looks"), [(2, 3), (3, 3), (2, 4), (2, 5), (2, 6), (1, 7), (4, 2), (4, 3)])
def test_looks_at_one_time_take_different_rows(count, num_looks):
    """As many sets of `count` rows as fill N = 12, and up to as many looks."""
    whole = target()
    for time in (0.0, 0.3, 0.99, 1.0):
        looks = (in_turn(whole, count, time, jnp.asarray(k), num_looks).posterior for k in range(num_looks))
        sets = [numbers_of(seen, whole.posterior) for seen in looks]
        assert len(set(np.ravel(sets))) == num_looks * count


def test_more_looks_than_sets_take_each_as_often_as_another():
    """Seven looks at three sets of four rows: three take the first, two each of the others."""
    whole = target()
    looks = (in_turn(whole, 4, 0.0, jnp.asarray(k), 7).posterior for k in range(7))
    seen = np.bincount(np.ravel([numbers_of(each, whole.posterior) for each in looks]), minlength=NUM_ROWS)
    assert sorted(seen) == [2] * 8 + [3] * 4


def test_what_a_few_rows_say_is_on_average_what_all_say():
    """Exactly, over the sets, where these fill the data: of the likelihood and of its gradient."""
    whole = target()
    z = whole.source.sample(KEY)
    said = jax.value_and_grad(Target.log_density, argnums=1)
    parts = [said(at_rows_of(whole, np.arange(b, NUM_ROWS, 3)), z) for b in range(3)]
    value, gradient = said(whole, z)
    np.testing.assert_allclose(np.mean([part[0] for part in parts]), value, rtol=1e-12)
    np.testing.assert_allclose(np.mean([part[1] for part in parts], axis=0), gradient, rtol=1e-10, atol=1e-12)
    assert not np.allclose(parts[0][1], gradient, rtol=1e-2)


def at_rows_of(whole, rows):
    return dataclasses.replace(whole, posterior=at_rows(whole.posterior, jnp.asarray(rows)))


@pytest.mark.parametrize("step", [{}, {"num_products": 2}], ids=["no step", "products"])
def test_a_field_sees_the_rows_of_its_look(step):
    """With one revision of N = 12 rows by four, at time 0.4, it is the field that always sees rows 1, 4, 7 and 10."""
    field = flow_over(posterior(), Euclidean(), rows=4, in_turn=True, sizes=tiny.DEEP, **step).model
    whole = field.sight.value.target
    assert whole.posterior.num_points == NUM_ROWS
    z = whole.source.sample(KEY)
    fixed = lambda first: Fixed(Sight(at_rows_of(whole, np.arange(first, NUM_ROWS, 3))))
    always = lambda first: dataclasses.replace(field, turn=None, sight=fixed(first))
    np.testing.assert_allclose(field(0.4, z), always(1)(0.4, z), rtol=1e-12)
    np.testing.assert_allclose(field(0.7, z), always(2)(0.7, z), rtol=1e-12)
    assert not np.allclose(field(0.4, z), always(2)(0.4, z), rtol=1e-4)


def test_the_second_revision_sees_other_rows_than_the_first():
    """Of three sets and two looks the second stands one set further."""
    field = flow_over(posterior(), Euclidean(), rows=4, in_turn=True, num_revisions=2).model
    whole = field.sight.value.target
    z = whole.source.sample(KEY)
    once = lambda first: dataclasses.replace(
        field, turn=None, num_revisions=2, sight=Fixed(Sight(at_rows_of(whole, np.arange(first, NUM_ROWS, 3))))
    )
    _, first, second = field.tries(0.1, z)
    np.testing.assert_allclose(first, once(0).tries(0.1, z)[1], rtol=1e-12)
    heard, companions = field._seen(at_rows_of(whole, np.arange(1, NUM_ROWS, 3)), jnp.asarray(0.1), z, first, None)
    change = field.revision(0.1, field.layout.unflatten(z), heard, companions=companions)
    np.testing.assert_allclose(second, first + field.layout.flatten(change), rtol=1e-10)


def test_as_many_rows_as_there_are_is_all_of_them_each_time():
    z = flow_over(posterior(), Euclidean()).source.sample(KEY)
    all_rows = flow_over(posterior(), Euclidean(), rows=None).model(0.4, z)
    np.testing.assert_array_equal(flow_over(posterior(), Euclidean(), rows=99, in_turn=True).model(0.4, z), all_rows)


def test_all_rows_cannot_take_turns():
    with pytest.raises(InputError, match="`rows` of Revised must be a number where looks take them in turn, got None"):
        Revised(rows=None, in_turn=True)
