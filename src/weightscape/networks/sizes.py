"""The sizes of a network: those of its layers, and that of its output, open until the targets are known."""

import numpy as np

from weightscape.core.checks import InputError, require, require_count


def as_sizes(entry: int | tuple[int, ...]) -> tuple[int, ...]:
    """Layer sizes as a tuple; a single size is one layer. The converter of such fields."""
    return (entry,) if isinstance(entry, (int, np.integer)) else tuple(entry)


def check_sizes(name: str, entries: tuple[int, ...], *, least: int = 0) -> None:
    """Raise unless there are `least` entries or more and each is a whole number of at least one."""
    require(len(entries) >= least, f"{name} must have at least {least} entries", entries, "Pass a size for each layer.")
    for entry in entries:
        require_count(f"Each entry of {name}", entry)


def check_outputs(network: str, outputs: int | None) -> None:
    """Raise unless `outputs` is open or a whole number of at least one."""
    if outputs is not None:
        require_count(f"`outputs` of {network}", outputs)


def known_outputs(network: str, outputs: int | None) -> int:
    """The output size, or an error where it is still open."""
    if outputs is None:
        raise InputError(
            f"`outputs` of {network} must be known before `init`, got None. Pass {network}(outputs=...) or let "
            "`Model.condition` bind it from the targets."
        )
    return outputs


def settle_outputs(network: str, outputs: int | None, num_outputs: int) -> int:
    """`num_outputs` where the size was open; an error where it was settled otherwise."""
    require(
        outputs in (None, num_outputs),
        f"`outputs` of {network} must match the targets' {num_outputs}",
        outputs,
        "Leave `outputs` open or correct it.",
    )
    return num_outputs
