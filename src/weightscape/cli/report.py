"""`weightscape report`: the report of a run, made again from its folder alone."""

from weightscape.cli.finish import finish_run
from weightscape.cli.options import OutFolder, Quiet, RunFolder
from weightscape.cli.run_folder import read_run
from weightscape.cli.screen import Screen


def report(run: RunFolder, out: OutFolder = None, quiet: Quiet = False) -> None:
    """Score a run again and write its report; by default into the run's own folder."""
    screen = Screen(quiet)
    finished = finish_run(run, read_run(run), out or run)
    screen.show(finished.table)
    screen.say(f"{finished.num_draws}.")
    screen.path(finished.page)
