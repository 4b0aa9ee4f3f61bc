"""What a run's progress looks like: to people on a terminal, to programs as JSON lines, to nobody elsewhere."""

import io
import json
import time

import pytest
from rich.console import Console

from weightscape.core import Bar, Deadline, JsonLines, Silent, default_progress


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


class Flushed(io.StringIO):
    """A stream that notes what a reader would have seen at each flush."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def flush(self):
        self.seen.append(self.getvalue())


def run_phase(progress, clock, nan=False):
    progress.start("sampling", 500)
    for done, seconds, divergent in ((8, 10.0, 3.0), (40, 0.5, 0.0), (168, 1.5, 2.0)):
        clock.now += seconds
        progress.advance(done, {"acceptance": float("nan") if nan else 0.8125, "divergent": divergent})
    clock.now += 1.0
    progress.finish()


def test_json_lines_tell_every_event_at_once(clock):
    stream = Flushed()
    run_phase(JsonLines(stream), clock)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["start", "advance", "advance", "advance", "finish"]
    assert [len(seen.splitlines()) for seen in stream.seen] == [1, 2, 3, 4, 5]
    assert all(line["phase"] == "sampling" and line["total"] == 500 for line in lines)
    assert [line["done"] for line in lines] == [0, 8, 40, 168, 168]
    assert [line["seconds"] for line in lines] == [0.0, 10.0, 10.5, 12.0, 13.0]
    # The first report waited for the compiler: the pace is (40 − 8)/0.5, then (168 − 8)/2.
    assert [line["per_second"] for line in lines] == [None, None, 64.0, 80.0, 80.0]
    assert [line.get("divergent") for line in lines] == [None, 3, 3, 5, 5]
    assert lines[1]["acceptance"] == 0.8125


def test_a_resumed_phase_counts_only_what_it_does_itself(clock):
    stream = io.StringIO()
    progress = JsonLines(stream)
    progress.start("sampling", 500)
    for done in (408, 428):
        clock.now += 2.0
        progress.advance(done, {})
    assert json.loads(stream.getvalue().splitlines()[-1])["per_second"] == 10.0


def test_numbers_that_json_has_not_are_null(clock):
    stream = io.StringIO()
    run_phase(JsonLines(stream), clock, nan=True)
    assert "NaN" not in stream.getvalue() and "Infinity" not in stream.getvalue()
    assert json.loads(stream.getvalue().splitlines()[2])["acceptance"] is None


def test_phases_start_afresh(clock):
    stream = io.StringIO()
    progress = JsonLines(stream)
    for _ in range(2):
        run_phase(progress, clock)
    progress.finish()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert len(lines) == 10 and lines[:5] == lines[5:]


def test_the_bar_shows_acceptance_divergences_pace_and_time_left():
    screen = io.StringIO()
    bar = Bar(Console(file=screen, force_terminal=True, width=160))
    bar.start("sampling", 500)
    bar.advance(8, {"acceptance": 0.8125, "divergent": 1200.0})
    time.sleep(0.02)
    bar.advance(40, {"acceptance": 0.75, "divergent": 34.0})
    bar.finish()
    last = screen.getvalue().rpartition("sampling")[2]
    assert "40/500" in last and "acceptance 0.75" in last
    assert "divergent 1,234" in last and "/s" in last and "left" in last


def test_an_ended_bar_is_quiet():
    screen = io.StringIO()
    bar = Bar(Console(file=screen, force_terminal=True, width=160))
    bar.finish()
    bar.advance(3, {})
    assert screen.getvalue() == ""


def test_a_deadline_wraps_json_lines(clock):
    stream = io.StringIO()
    progress = Deadline(20.0, JsonLines(stream))
    run_phase(progress, clock)
    assert len(stream.getvalue().splitlines()) == 5 and progress.seconds_left() == pytest.approx(7.0)


def test_quiet_where_there_is_no_terminal(monkeypatch):
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert isinstance(default_progress(), Silent)
    chosen = JsonLines(io.StringIO())
    assert default_progress(chosen) is chosen
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    assert isinstance(default_progress(), Bar)
