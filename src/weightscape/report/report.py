"""A report as data: what a page says, before it is written."""

from collections.abc import Mapping
from typing import NamedTuple

from matplotlib.figure import Figure


class Table(NamedTuple):
    """A title, the names of the columns, and rows of text; the first column names the row."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Picture(NamedTuple):
    """A figure: its file name without an ending, a title, and one line on how to read it."""

    name: str
    title: str
    caption: str
    figure: Figure


class Report(NamedTuple):
    """A title, one sentence in plain words, and what stands behind it."""

    title: str
    summary: str
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    settings: Mapping[str, str] = {}
