"""What a command prints: short tables, sentences, and last of all the path of what it wrote."""

import sys
from pathlib import Path
from typing import NamedTuple

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from weightscape.core import Bar, Progress, Silent
from weightscape.report import Table


class Screen(NamedTuple):
    """The terminal; a `quiet` one shows only paths."""

    quiet: bool

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
        """A bar on a terminal, silence elsewhere."""
        return Bar() if sys.stderr.isatty() and not self.quiet else Silent()
