"""What a report says of chains: their health, whether they agree, and nothing of points."""

import jax
import numpy as np
import pytest
from tests.draws.made import linear_regression

import weightscape as ws
from weightscape.draws import ChainRecord, Convergence, Diagnostics, Health, RunningLppd, examine_chains
from weightscape.evaluate import scores
from weightscape.report import (
    Fitted,
    convergence_table,
    health_table,
    plot_convergence,
    plot_lppd,
    report_run,
)
from weightscape.report.chains import rhat_verdict
from weightscape.report.page import figure_bytes

RNG = np.random.default_rng(0)


def diagnostics(rhat, bulk, seconds=None) -> Diagnostics:
    bulk = np.asarray(bulk)[:, None]
    functions = Convergence(np.asarray(rhat)[:, None], bulk, bulk / 2)
    return Diagnostics(functions, Convergence(np.asarray(1.002), bulk[0], bulk[0]), 4, 500, seconds)


def report_of(draws: ws.Draws, data: ws.Dataset):
    predictive = ws.predict(draws, data.test.x)
    found = {name: float(np.asarray(value)) for name, value in dict(scores(predictive, data.test.y)).items()}
    return report_run(jax.random.key(0), Fitted(draws, data, predictive, found, lambda x: ws.predict(draws, x)), {})


def test_the_health_table_has_what_is_known_of_each_chain():
    info = {"acceptance": np.full((4, 20), 0.83), "is_accepted": np.ones((4, 20), bool)}
    info["is_accepted"][2] = False
    health = examine_chains(RNG.normal(size=(4, 20)), info)
    table = health_table(health)
    assert table.columns == ("chain", "acceptance", "draws that moved", "mean log density", "verdict")
    assert table.rows[2][0] == "2" and table.rows[2][-1] == "left out: it did not move"
    assert table.rows[0][1:3] == ("0.830", "100 %") and table.rows[0][-1] == "healthy"
    missing = Health(2, (), (), (ChainRecord(bfmi=0.9), ChainRecord()))
    assert [row[1] for row in health_table(missing).rows] == ["0.900", "–"]


def test_a_table_of_very_many_chains_is_cut_but_keeps_the_odd_ones():
    log_density = RNG.normal(size=(200, 20))
    log_density[150, 3] = np.nan
    log_density[199] += 50
    table = health_table(examine_chains(log_density, {}))
    assert table.title == "Health of 32 of 200 chains" and len(table.rows) == 32
    assert [row[0] for row in table.rows[-2:]] == ["150", "199"] and table.rows[0][0] == "0"


@pytest.mark.parametrize(
    ("rhat", "words"),
    [
        (1.004, "the chains agree"),
        (1.03, "nearly there"),
        (1.2, "do not agree"),
        (np.inf, "do not"),
        (np.nan, "not known"),
    ],
)
def test_verdicts(rhat, words):
    assert words in rhat_verdict(rhat)


def test_the_convergence_table_names_the_worst():
    table = convergence_table(diagnostics([1.003, 1.2, np.nan], [800.0, 90.0, 2000.0], seconds=45.0))
    cells = {row[0]: row[1:] for row in table.rows}
    assert cells["worst R̂ of the functions"][0] == "1.200" and "do not agree" in cells["worst R̂ of the functions"][1]
    assert cells["least effective sample size"][0] == "90" and "fewer than the 400" in str(cells)
    assert cells["the same, of the tails"][0] == "45" and cells["effective draws a second"][0] == "2.000"
    assert "enough" in str(convergence_table(diagnostics([1.0], [800.0])).rows)


def test_pictures_show_the_numbers_in_order():
    figure = plot_convergence(diagnostics([1.02, 1.003, np.nan, np.inf], [30.0, 10.0, 20.0, 40.0]))
    left, right = figure.axes
    np.testing.assert_array_equal(left.lines[0].get_ydata(), [1.003, 1.02])
    np.testing.assert_array_equal(right.lines[0].get_ydata(), [10, 20, 30, 40])
    np.testing.assert_array_equal(right.lines[1].get_ydata(), [5, 10, 15, 20])
    assert figure_bytes(figure, "png")
    lppd = RunningLppd(RNG.normal(size=(40, 300)) - 50, RNG.normal(size=300) - 40, 10)
    figure = plot_lppd(lppd)
    np.testing.assert_array_equal(figure.axes[0].lines[1].get_ydata(), lppd.by_chain[1] / 10)
    np.testing.assert_array_equal(figure.axes[0].lines[32].get_ydata(), lppd.pooled / 10)
    assert b"mathdefault" not in figure_bytes(figure, "svg")


def test_the_report_of_chains_has_their_checks():
    draws, data = linear_regression(3, 40)
    report = report_of(draws, data)
    assert [table.title for table in report.tables] == ["Scores on the test rows", "Do the chains agree?"]
    names = [picture.name for picture in report.pictures]
    assert names == ["predicted", "calibration", "convergence", "lppd", "trace", "weights"]


@pytest.mark.parametrize(("num_chains", "num_draws"), [(5, 1), (1, 40), (3, 10)])
def test_points_single_chains_and_short_ones_have_none(num_chains, num_draws):
    draws, data = linear_regression(num_chains, num_draws)
    report = report_of(draws, data)
    assert [table.title for table in report.tables] == ["Scores on the test rows"]
    assert not {"convergence", "lppd"} & {picture.name for picture in report.pictures}
