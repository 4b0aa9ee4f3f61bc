"""Whether a folder of a comparison holds the run that is asked for, and how long it took: `measured.json`.

It is written when a run ends, finished or stopped by the user, and is the last of its files. A run that was killed has
none, so the seconds since its last end are not counted.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from weightscape.cli.run_folder import MEASURED, require_free
from weightscape.core.checks import require
from weightscape.core.files import read_json, write_json
from weightscape.report.style import shortened

Identity = Mapping[str, Any]
"""What makes a run this run and no other, as plain JSON."""

_MORE_DRAWS = "num_draws"
_MOST_CHARACTERS = 40
_STRUCTURE = ("settings", "fields", "values", "dict", "tuple")
"""Words of the stored form that a reader need not see."""


class Measured(NamedTuple):
    """A run that ended: whether it was finished, its wall-clock seconds, and what else is known of it."""

    is_finished: bool
    seconds: float
    facts: Mapping[str, Any]


def read_measured(folder: Path, identity: Identity, *, overwrite: bool, resume: bool) -> Measured | None:
    """What is known of the run in `folder`, None where one is to be begun; raises where it must not be touched."""
    has_ended = (folder / MEASURED).exists() and not overwrite
    continues = require_free(folder, overwrite=overwrite, resume=resume or has_ended)
    if not has_ended:
        return Measured(False, 0.0, {}) if continues else None
    found = read_json(folder / MEASURED)
    changed = list(_differences(_as_stored(identity), found["identity"]))
    grown = [name for name, *_ in changed] == [_MORE_DRAWS] and resume
    for name, asked, came in () if grown else changed:
        remedy = "Repeat the settings of the first command, pass `--overwrite`, or choose another `--out`."
        require(False, f"The run in `{folder}` must have {name} {asked}", came, remedy)
    is_finished = found["finished"] and not grown
    came, remedy = "one that was stopped", "Pass `--resume` to go on with it, or `--overwrite` to replace it."
    require(is_finished or resume, f"`{folder}` must hold a finished run or none", came, remedy)
    return Measured(is_finished, found["seconds"], found["facts"])


def write_measured(folder: Path, identity: Identity, measured: Measured) -> None:
    """Note that a run has ended."""
    is_finished, seconds, facts = measured
    write_json(
        folder / MEASURED,
        {"finished": is_finished, "seconds": seconds, "facts": dict(facts), "identity": _as_stored(identity)},
    )


def _as_stored(identity: Identity) -> dict[str, Any]:
    return json.loads(json.dumps(identity))


def _differences(asked: Any, came: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str, str]]:
    """The name of each entry that differs, with both values."""
    if isinstance(asked, dict) and isinstance(came, dict):
        for name in dict.fromkeys((*asked, *came)):
            yield from _differences(asked.get(name), came.get(name), (*path, name))
    elif asked != came:
        name = ".".join(part for part in path if part not in _STRUCTURE) or "settings"
        yield name, _plain(asked), _plain(came)


def _plain(value: Any) -> str:
    """A stored value as a reader would write it; numbers are stored as text, with all their digits."""
    if isinstance(value, list) and len(value) == 1:
        return _plain(value[0])
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return f"{float(value):.6g}"
    return shortened(str(value), _MOST_CHARACTERS)
