"""The entry: the commands, and what happens when one fails.

Mistakes that the user can mend end in one line and exit code 2; an interruption ends in one line that says what is
kept, and exit code 130; anything else is a fault of the program and shows its trace.
"""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.exceptions import TyperException

import weightscape
from weightscape.cli.barrier import barrier
from weightscape.cli.bench import bench
from weightscape.cli.compare import compare
from weightscape.cli.data import data
from weightscape.cli.demo import demo
from weightscape.cli.errors import Stopped, one_line
from weightscape.cli.evidence import evidence
from weightscape.cli.fit import fit
from weightscape.cli.flow import flow
from weightscape.cli.population import population
from weightscape.cli.predict import predict
from weightscape.cli.prior import prior
from weightscape.cli.prune import prune
from weightscape.cli.rebase import rebase
from weightscape.cli.report import report
from weightscape.cli.symmetry import symmetry
from weightscape.core import InputError, InputTypeError, devices

MISTAKE = 2
INTERRUPTED = 130

app = typer.Typer(
    help="Bayesian deep learning in weight space: networks with honest error bars.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS = (
    demo,
    fit,
    predict,
    report,
    compare,
    data,
    prior,
    evidence,
    symmetry,
    rebase,
    barrier,
    prune,
    population,
    flow,
)
for _command in _COMMANDS:
    app.command()(_command)
app.add_typer(bench, name="bench")


def _show_version(asked: bool) -> bool:
    if asked:
        typer.echo(f"weightscape {weightscape.__version__}")
        raise typer.Exit
    return asked


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Bayesian deep learning in weight space: networks with honest error bars."""


def main() -> None:
    """Run the command line on all cores."""
    devices()
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    try:
        exit_code = int(app(list(arguments), prog_name="weightscape", standalone_mode=False) or 0)
    except TyperException as error:
        return _fail(error.format_message(), MISTAKE)
    except (InputError, InputTypeError, OSError) as error:
        return _fail(one_line(error), MISTAKE)
    except Stopped as error:
        return _fail(one_line(error), INTERRUPTED)
    # Typer turns an interruption into this code.
    if exit_code == INTERRUPTED:
        return _fail("Stopped. Files that are written stay as they are.", INTERRUPTED)
    return exit_code


def _fail(message: str, exit_code: int) -> int:
    typer.echo(f"weightscape: {message}", err=True)
    return exit_code


if __name__ == "__main__":
    main()
