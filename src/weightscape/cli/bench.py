"""`weightscape bench`: suites of problems that methods are compared on, each a command of its own."""

import typer

from weightscape.cli.bench_uci import uci

bench = typer.Typer(
    help="Compare methods on a suite of standard problems; stopped runs go on with `--resume`.", no_args_is_help=True
)
bench.command("uci")(uci)


@bench.callback()
def _suites() -> None:
    """Compare methods on a suite of standard problems; stopped runs go on with `--resume`."""
