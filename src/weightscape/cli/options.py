"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Seed = Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Fixes every random choice.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the path of what was written.")]
OutFolder = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where to write.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that `weightscape fit` wrote.")]
ProgressName = Annotated[str, typer.Option("--progress", help="bar (on a terminal), json (a line an event) or none.")]
MethodSetting = Annotated[
    list[str] | None, typer.Option("--set", metavar="METHOD.NAME=VALUE", help="A setting of one of the methods.")
]
