"""Reading a table of text, with every cell traceable to its line.

The result is a frame of stripped text whose index holds line numbers of the file, the header being line 1, so
that any later complaint can name the row as an editor shows it. Nothing is guessed or filled in here, except
the delimiter: the one of comma, semicolon and tab that the header has most of.
"""

import csv
import io
from collections import Counter
from pathlib import Path

import pandas as pd

from weightscape.core.checks import InputError, require, require_type


def read_table(source: str | Path | pd.DataFrame) -> pd.DataFrame:
    """A frame of text from a CSV file, or from a frame, whose own index then names the rows."""
    if isinstance(source, pd.DataFrame):
        return _from_frame(source)
    remedy = "Pass the path of a CSV file or a pandas DataFrame."
    require_type(isinstance(source, (str, Path)), "A table must be a path or a frame", type(source), remedy)
    path = Path(source)
    rows = _parsed(path, _text(path))
    require(len(rows) > 0, f"`{path}` must have a header line", "an empty file", "Check the path.")
    header = _header(path, rows[0][1])
    require(len(rows) > 1, f"`{path}` must have rows below its header", "the header alone", "Add data.")
    for line, cells in rows[1:]:
        came, remedy = len(cells), "Quote cells that contain the delimiter and leave none out."
        require(came == len(header), f"Row {line} of `{path}` must have {len(header)} cells", came, remedy)
    lines, cells = zip(*rows[1:], strict=True)
    return pd.DataFrame(list(cells), columns=header, index=pd.Index(lines, name="row"), dtype=object)


def _text(path: Path) -> str:
    came = "a directory" if path.is_dir() else "nothing there"
    require(path.is_file(), f"`{path}` must be a CSV file", came, "Check the path.")
    content = path.read_bytes()
    remedy = "Save the table as a CSV file in UTF-8."
    require(b"\0" not in content, f"`{path}` must be a CSV file", "binary content", remedy)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        came = f"byte 0x{content[error.start]:02x} in row {line}"
        raise InputError(f"`{path}` must be text in UTF-8, got {came}. {remedy}") from error


def _parsed(path: Path, text: str) -> list[tuple[int, list[str]]]:
    """Line number and cells of every line that is not blank; a quoted cell may span lines."""
    first_line = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(",;\t", key=first_line.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows, line = [], 1
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if stripped not in ([], [""]):
                rows.append((line, stripped))
            line = reader.line_num + 1
    except csv.Error as error:
        remedy = "Close the quotes and save the table as CSV."
        raise InputError(f"`{path}` must be a CSV file, got {error} in row {line}. {remedy}") from error
    return rows


def _header(path: Path, names: list[str]) -> list[str]:
    repeated = [name for name, count in Counter(names).items() if count > 1 and name]
    asked = f"Columns of `{path}` must have different names"
    require(not repeated, asked, f"{repeated[:1]} more than once", "Rename or remove one.")
    unnamed = names.index("") + 1 if "" in names else 0
    asked = f"Columns of `{path}` must have names"
    require(unnamed == 0, asked, f"none for column {unnamed}", "Name the column or remove it.")
    return names


def _from_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Text of every cell, empty where the frame has a missing value; numbers keep all their digits."""
    require(len(frame) > 0, "A frame must have rows", "none", "Pass some data.")
    names = _header(Path("frame"), [str(name) for name in frame.columns])
    columns = [frame.iloc[:, i] for i in range(len(names))]
    texts = [["" if gone else str(cell).strip() for cell, gone in zip(c, c.isna(), strict=True)] for c in columns]
    return pd.DataFrame(dict(zip(names, texts, strict=True)), index=frame.index, dtype=object)
