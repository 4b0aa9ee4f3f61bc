"""Chain health: planted faults are found, true modes are kept, and the record survives storage."""

import json

import arviz_stats
import numpy as np
import pytest

from weightscape.core import InputError
from weightscape.draws import ChainRecord, Health, examine_chains
from weightscape.draws.health import decode_health


def healthy(num_chains=16, num_draws=50, seed=0):
    """Log densities of a common level and the notes of chains that move."""
    generator = np.random.default_rng(seed)
    shape = (num_chains, num_draws)
    log_density = -100 + generator.normal(size=shape)
    acceptance = generator.uniform(0.6, 1.0, shape)
    info = {
        "acceptance": acceptance,
        "is_accepted": generator.uniform(size=shape) < acceptance,
        "is_divergent": np.zeros(shape, bool),
        "energy": 120 + generator.normal(size=shape),
        "energy_error": 0.3 * generator.normal(size=shape),
    }
    return log_density, info


def stop(info, chain):
    info["is_accepted"][chain], info["acceptance"][chain] = False, 0.0


def test_healthy_chains_are_all_kept_and_recorded():
    log_density, info = healthy()
    health = examine_chains(log_density, info)
    assert health.kept == tuple(range(16)) and health.flagged == () and str(health) == "all 16 chains healthy"
    assert [row.verdict for row in health.rows()] == ["healthy"] * 16
    record = health.chains[5]
    assert record.acceptance == pytest.approx(info["acceptance"][5].mean())
    assert record.moved == pytest.approx(info["is_accepted"][5].mean())
    assert record.energy_error == pytest.approx(np.sqrt(np.mean(info["energy_error"][5] ** 2)))
    assert record.log_density == pytest.approx(log_density[5].mean()) and record.divergences == 0
    assert record.bfmi == pytest.approx(arviz_stats.bfmi(info["energy"])[5])


def test_stuck_and_broken_chains_are_left_out_and_named():
    log_density, info = healthy()
    stop(info, 3)
    log_density[11, 40] = np.nan
    log_density[12, :2] = np.inf, -np.inf
    health = examine_chains(log_density, info)
    broken = "its log density is not finite"
    assert health.left_out == ((3, "it did not move"), (11, broken), (12, broken)) and health.flagged == ()
    assert health.kept == tuple(chain for chain in range(16) if chain not in (3, 11, 12))
    assert str(health).startswith("13 of 16 chains kept; chain 3 left out: it did not move; chain 11 left out: its")
    assert health.rows()[3].verdict == "left out: it did not move" and health.chains[11].log_density is None


@pytest.mark.parametrize("offset", [-12.0, 12.0])
def test_a_second_mode_is_flagged_and_kept(offset):
    log_density, info = healthy()
    log_density[[2, 9]] += offset
    health = examine_chains(log_density, info)
    assert health.left_out == () and [chain for chain, _ in health.flagged] == [2, 9]
    side = "above" if offset > 0 else "below"
    assert f"standard deviations {side} the other chains'" in health.flagged[0][1]
    assert str(health).startswith("16 of 16 chains kept; chain 2 flagged: its log density lies 1")


def test_the_distance_is_in_standard_deviations_along_the_chains():
    shape = np.tile([-1.0, 1.0], 10)  # a standard deviation of √(20/19) around the level
    levels = np.array([0.0, 0.0, 0.0, 5.1, -5.2])
    flagged = examine_chains(levels[:, None] + shape, {}).flagged
    assert flagged == ((4, "its log density lies 5.07 standard deviations below the other chains'"),)


def test_odd_chains_cannot_hide_by_being_wild():
    """Seven of sixteen chains with a spread of their own: means and pooled variances would hide the far one."""
    log_density, info = healthy()
    log_density[:7] = -100 + 300 * np.random.default_rng(1).normal(size=(7, 50))
    log_density[15] -= 20
    assert 15 in dict(examine_chains(log_density, info).flagged)


@pytest.mark.parametrize(
    ("levels", "flagged"),
    [
        ([0.0], []),
        ([0.0, 2.0], []),
        ([0.0, 9.0], [0, 1]),
        ([0.0, 0.0, 30.0], [2]),
        ([0.0, 0.0, 30.0, 30.0], [0, 1, 2, 3]),
        ([0.0, 0.0, 0.0, 30.0], [3]),
    ],
)
def test_few_chains(levels, flagged):
    log_density, info = healthy(len(levels))
    health = examine_chains(log_density + np.array(levels)[:, None], info)
    assert [chain for chain, _ in health.flagged] == flagged and health.left_out == ()


def test_broken_chains_have_no_say_in_what_is_far():
    log_density, info = healthy(5)
    for chain, level in ((0, -3.0), (1, -3.0), (2, -3.0)):
        stop(info, chain)
        log_density[chain] = level  # stuck in one place, so their spread is zero and their level common
    assert examine_chains(log_density, info).flagged == ()


@pytest.mark.parametrize("num_draws", [1, 2, 9])
def test_very_short_chains_are_not_compared(num_draws):
    log_density, info = healthy(4, num_draws)
    info["is_accepted"][:] = True
    log_density[1] -= 100
    assert examine_chains(log_density, info).flagged == ()


def test_constant_chains_are_far_only_where_they_differ():
    assert examine_chains(np.full((3, 20), -1.0), {}).flagged == ()
    levels = np.array([-1.0, -1.0, -2.0])
    assert [chain for chain, _ in examine_chains(np.repeat(levels[:, None], 20, axis=1), {}).flagged] == [2]


def test_low_acceptance_and_divergences_are_flagged():
    log_density, info = healthy(4, 200)
    info["acceptance"][1] = 0.04
    info["is_divergent"][2, :6] = True
    info["is_divergent"][3, :2] = True  # exactly 1 %
    info["energy_error"][2, :6] = np.inf
    health = examine_chains(log_density, info)
    assert health.flagged == (
        (1, "it accepts only 4 % of its proposals"),
        (2, "3 % of its transitions diverged"),
    )
    assert [record.divergences for record in health.chains] == [0, 0, 6, 2]
    finite = info["energy_error"][2, 6:]
    assert health.chains[2].energy_error == pytest.approx(np.sqrt(np.mean(finite**2)))
    log_density[1] -= 50
    reason = dict(examine_chains(log_density, info).flagged)[1]
    assert "standard deviations below" in reason and reason.endswith(", and it accepts only 4 % of its proposals")


def test_methods_without_notes_are_judged_by_their_log_density():
    log_density, _ = healthy(4)
    log_density[2, 0] = np.nan
    health = examine_chains(log_density, {"step_size": np.ones((4, 50))})
    assert health.kept == (0, 1, 3)
    assert health.chains[0] == ChainRecord(log_density=pytest.approx(log_density[0].mean()))


def test_strict_names_every_chain_and_the_remedy():
    log_density, info = healthy(24)
    for chain in range(12):
        stop(info, chain)
    log_density[20, 0] = np.nan
    with pytest.raises(InputError, match="With `strict` every chain must move") as caught:
        examine_chains(log_density, info, strict=True)
    message = str(caught.value)
    assert all(f"chain {chain}: it did not move" in message for chain in range(12))
    assert "chain 20: its log density is not finite" in message and "lower `step_size`" in message
    assert examine_chains(*healthy(), strict=True).kept == tuple(range(16))
    assert str(examine_chains(log_density, info)).endswith("5 more left out")


def test_keep_all_leaves_none_out_and_names_them():
    log_density, info = healthy()
    stop(info, 3)
    log_density[5] -= 30
    health = examine_chains(log_density, info, keep_all=True)
    assert health.kept == tuple(range(16)) and health.left_out == ()
    assert [chain for chain, _ in health.flagged] == [3, 5] and dict(health.flagged)[3] == "it did not move"
    for chain in range(16):
        stop(info, chain)
    assert len(examine_chains(log_density, info, keep_all=True).flagged) == 16
    with pytest.raises(InputError, match="At most one of `strict` and `keep_all`"):
        examine_chains(log_density, info, keep_all=True, strict=True)


def test_no_usable_chain_is_an_error():
    log_density, info = healthy(2)
    stop(info, 0)
    log_density[1] = np.nan
    with pytest.raises(InputError, match=r"At least one chain must move .* got 0 of 2 chains kept; chain 0 left out"):
        examine_chains(log_density, info)


def test_health_survives_json_and_is_hashable():
    log_density, info = healthy()
    stop(info, 3)
    log_density[5] -= 30
    log_density[7, 0] = np.nan
    health = examine_chains(log_density.astype(np.float32), info)
    assert decode_health(json.loads(json.dumps(health, allow_nan=False)), 16) == health
    assert hash(health) == hash(decode_health(json.loads(json.dumps(health)), 16))
    assert decode_health([4, [[2, "it did not move"]]], 3) == Health(4, ((2, "it did not move"),))
    assert decode_health(None, 3) == Health(3)
    with pytest.raises(InputError, match="Stored health must be a list"):
        decode_health("well", 3)
