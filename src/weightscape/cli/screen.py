"""What a command prints: short tables, sentences, and last of all the path of what it wrote."""

import sys
from pathlib import Path
from typing import NamedTuple

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from weightscape.core import Bar, JsonLines, Progress, Silent
from weightscape.core.checks import require_known
from weightscape.report import Table


class Screen(NamedTuple):
    """The terminal; a `quiet` one shows only paths. `shown` is how progress is shown: bar, json or none."""

    quiet: bool
    shown: str = "bar"

    def say(self, sentence: str) -> None:
        """Print a sentence."""
        if not self.quiet:
            typer.echo(sentence)

    def show(self, table: Table) -> None:
        """Print a table."""
        if self.quiet:
            return
        drawn = RichTable(title=Text(table.title, "bold"), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        for i, name in enumerate(table.columns):
            drawn.add_column(Text(name), justify="right" if i else "left", overflow="fold")
        for row in table.rows:
            drawn.add_row(*(Text(cell) for cell in row))
        # Made here, so that it writes to whatever the standard output is now.
        Console(highlight=False).print(drawn)

    def path(self, path: Path) -> None:
        """Print a path on a line of its own, quiet or not."""
        typer.echo(str(path))

    def progress(self) -> Progress:
        """A bar on a terminal and silence elsewhere, or a line of JSON for each event on the standard error."""
        require_known("`--progress`", self.shown, ("bar", "json", "none"))
        if self.shown == "json":
            return JsonLines(sys.stderr)
        return Bar() if self.shown == "bar" and sys.stderr.isatty() and not self.quiet else Silent()
