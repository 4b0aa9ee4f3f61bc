"""The experiment on exact posteriors: all its stages on a small case, and the table that keeps them."""

import dataclasses
import json
import math
import sys

import pytest
from experiments import exact_posterior
from experiments.exact import stages
from experiments.exact.settings import CASES, IDEAS

from weightscape.flow import Plain
from weightscape.metanet import Sizes


def test_rows_are_kept_by_idea_and_steps_and_shown_in_a_table(tmp_path):
    for row in (
        {"idea": "a", "num_steps": 5, "J": 2.0},
        {"idea": "b", "J": 1.0},
        {"idea": "a", "num_steps": 5, "J": 3.25},
    ):
        exact_posterior._keep(tmp_path, row)
    kept = json.loads((tmp_path / "results.json").read_text())
    assert kept == [{"idea": "b", "J": 1.0}, {"idea": "a", "num_steps": 5, "J": 3.25}]
    lines = (tmp_path / "table.md").read_text().splitlines()
    assert len(lines) == 4 and lines[0].count("|") == lines[1].count("|") == lines[3].count("|")
    assert "3.25" in lines[3]


@pytest.mark.slow
def test_every_stage_of_a_small_case(tmp_path, monkeypatch, capsys):
    """With layers that know no symmetry in place of a metanet, whose compilation would take most of the time."""
    small = CASES["small"]
    plain = Plain(Sizes(width=16, num_blocks=1, num_heads=1))
    monkeypatch.setitem(
        CASES, "small", dataclasses.replace(small, flow=dataclasses.replace(small.flow, architecture=plain))
    )
    monkeypatch.setattr(sys, "argv", ["exact_posterior", str(tmp_path), "small"])
    exact_posterior.main()
    (row,) = json.loads((tmp_path / "small" / "results.json").read_text())
    assert row["idea"] == next(iter(IDEAS)) and row["num_steps"] == small.flow.num_steps
    for name in ("J", "J_without_noise", "weights_value", "annealed", "ess", "moved_gradients", "tv_moved_off"):
        assert math.isfinite(row[name]), name
    assert 0 <= row["tv_moved_test"] < row["tv_flow_test"] <= 1
    told = [json.loads(line)["stage"] for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert told == list(stages.STAGES)
