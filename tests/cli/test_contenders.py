"""Contenders that are run one after the other: what is reused, what fails, what is stopped."""

import json

import numpy as np
import pytest

from weightscape.cli.compare_page import scorable
from weightscape.cli.contender import Contender, Result
from weightscape.cli.contenders import Outcome, run_contenders
from weightscape.cli.errors import Stopped
from weightscape.cli.measured import Measured, read_measured, write_measured
from weightscape.cli.screen import Screen
from weightscape.core import InputError
from weightscape.predictive import given_classes

SCREEN = Screen(quiet=False, shown="none")


class Made(Contender):
    """Does what it is told to and counts how often."""

    def __init__(self, does=None, settings=None):
        self.does, self.settings, self.runs = does, settings or {"num_steps": 3, "num_draws": 5}, []

    def identity(self):
        return {"settings": {"fields": self.settings}, "seed": 0}

    def run(self, folder, progress, *, resume):
        self.runs.append(resume)
        (folder / "run.json").parent.mkdir(parents=True, exist_ok=True)
        (folder / "run.json").write_text("{}")
        if self.does is not None:
            raise self.does
        return {"noted": 7}

    def result(self, folder, measured):
        assert measured.is_finished and measured.facts == {"noted": 7}
        return Result(given_classes(np.array([[0.5, 0.5]])), None, None, measured.seconds, None, 8)


def run(folder, contenders, *, overwrite=False, resume=False):
    return run_contenders(contenders, folder, SCREEN, overwrite=overwrite, resume=resume)


def test_predictions_that_call_what_came_impossible_are_failures():
    predict = lambda table: Result(given_classes(np.array(table)), None, None, 1.0, None, 8)
    sure, fair = predict([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]), predict([[0.9, 0.1]] * 3)
    outcome = scorable(Outcome({"sure": sure, "fair": fair}, {"vi": "why"}), np.array([1, 1, 0]))
    assert list(outcome.results) == ["fair"]
    assert outcome.failures == {"vi": "why", "sure": "1 test row with probability 0"}


def test_what_is_finished_is_not_run_again_unless_asked(tmp_path, capsys):
    contender = Made()
    first = run(tmp_path, {"a": contender}).results["a"]
    again = run(tmp_path, {"a": contender, "b": Made()}).results["a"]
    assert contender.runs == [False] and again.seconds == first.seconds
    assert capsys.readouterr().out.count("from the earlier run") == 1
    run(tmp_path, {"a": contender}, overwrite=True)
    assert contender.runs == [False, False]


def test_a_failure_is_noted_and_leaves_nothing_in_the_way(tmp_path):
    broken, fault = Made(InputError("A Hessian must be\ndefinite, got -1.")), Made(ZeroDivisionError("by zero"))
    outcome = run(tmp_path, {"broken": broken, "fault": fault, "good": Made()})
    assert list(outcome.results) == ["good"]
    assert outcome.failures == {
        "broken": "A Hessian must be definite, got -1.",
        "fault": f"ZeroDivisionError: by zero (see `{tmp_path / 'fault' / 'failure.txt'}`)",
    }
    assert "raise self.does" in (tmp_path / "fault" / "failure.txt").read_text()
    assert list(run(tmp_path, {"broken": Made(), "good": Made()}).results) == ["broken", "good"]


def test_a_finished_run_is_kept_though_its_result_fails(tmp_path, monkeypatch):
    contender = Made()
    with monkeypatch.context() as patch:
        patch.setattr(Made, "result", lambda *_: 1 / 0)
        assert "division by zero" in run(tmp_path, {"a": contender}).failures["a"]
    assert list(run(tmp_path, {"a": contender}).results) == ["a"] and contender.runs == [False]


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), Stopped("Stopped.")])
def test_what_was_stopped_goes_on_when_asked_and_its_seconds_add_up(tmp_path, stop):
    contenders = {"good": Made(), "slow": Made(stop)}
    with pytest.raises(Stopped, match="Stopped during slow. Finished runs .* with `--resume` to go on."):
        run(tmp_path, contenders)
    path = tmp_path / "slow" / "measured.json"
    noted = json.loads(path.read_text())
    assert noted["finished"] is False
    path.write_text(json.dumps({**noted, "seconds": 100.0}))
    contenders["slow"].does = None
    with pytest.raises(InputError, match="must hold a finished run or none, got one that was stopped"):
        run(tmp_path, contenders)
    assert run(tmp_path, contenders, resume=True).results["slow"].seconds > 100
    assert contenders["slow"].runs == [False, True] and contenders["good"].runs == [False]


def test_a_run_that_was_killed_needs_to_be_resumed(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "run.json").write_text("{}")
    contender = Made()
    with pytest.raises(InputError, match="Pass `--resume` to go on with it"):
        run(tmp_path, {"a": contender})
    run(tmp_path, {"a": contender}, resume=True)
    assert contender.runs == [True]


def test_nothing_is_run_where_one_must_be_refused(tmp_path):
    run(tmp_path, {"b": Made()})
    first = Made()
    with pytest.raises(InputError, match="b` must have num_steps 4, got 3. Repeat the settings"):
        run(tmp_path, {"a": first, "b": Made(settings={"num_steps": 4, "num_draws": 5})})
    assert first.runs == []


def test_more_draws_may_be_asked_for_of_a_run_that_goes_on(tmp_path):
    run(tmp_path, {"a": Made()})
    longer = Made(settings={"num_steps": 3, "num_draws": 9})
    with pytest.raises(InputError, match="must have num_draws 9, got 5"):
        run(tmp_path, {"a": longer})
    run(tmp_path, {"a": longer}, resume=True)
    assert longer.runs == [True]


def test_numbers_of_settings_are_named_as_one_writes_them(tmp_path):
    stored = lambda value: {"settings": {"fields": {"step_size": {"values": [value], "shape": []}}}, "data": "d"}
    write_measured(tmp_path, stored("0.1"), Measured(True, 1.0, {}))
    assert read_measured(tmp_path, stored("0.1"), overwrite=False, resume=False) == Measured(True, 1.0, {})
    with pytest.raises(InputError, match="must have step_size 0.2, got 0.1"):
        read_measured(tmp_path, stored("0.2"), overwrite=False, resume=True)
