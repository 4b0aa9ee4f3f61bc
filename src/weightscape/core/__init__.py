"""What every other package stands on: errors, trees, keys, files, devices, progress and the chunked driver."""

from weightscape.core.checks import InputError, InputTypeError
from weightscape.core.compiler import turn_faulty_fusions_off
from weightscape.core.config import decode, encode, register, registered
from weightscape.core.devices import chain_mesh, devices
from weightscape.core.loop import Chunk, Plan, drive, map_chains
from weightscape.core.progress import Bar, Deadline, Progress, Silent, default_progress
from weightscape.core.types import PRNGKey, Scalar, Tree

__all__ = [
    "Bar",
    "Chunk",
    "Deadline",
    "InputError",
    "InputTypeError",
    "PRNGKey",
    "Plan",
    "Progress",
    "Scalar",
    "Silent",
    "Tree",
    "chain_mesh",
    "decode",
    "default_progress",
    "devices",
    "drive",
    "encode",
    "map_chains",
    "register",
    "registered",
]

turn_faulty_fusions_off()
