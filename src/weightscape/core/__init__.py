"""What every other package stands on: errors, trees, keys, files, devices, progress and the chunked driver."""

from weightscape.core.bar import Bar, default_progress
from weightscape.core.checks import InputError, InputTypeError
from weightscape.core.compiler import turn_faulty_fusions_off
from weightscape.core.config import decode, encode, register, registered
from weightscape.core.devices import chain_mesh, devices
from weightscape.core.json_lines import JsonLines
from weightscape.core.loop import Chunk, Plan, Walk, drive, map_chains
from weightscape.core.progress import Deadline, Progress, Silent
from weightscape.core.types import PRNGKey, Scalar, Tree

__all__ = [
    "Bar",
    "Chunk",
    "Deadline",
    "InputError",
    "InputTypeError",
    "JsonLines",
    "PRNGKey",
    "Plan",
    "Progress",
    "Scalar",
    "Silent",
    "Tree",
    "Walk",
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
