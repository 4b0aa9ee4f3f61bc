"""Draws: the one thing that crosses from making weights to using them."""

from weightscape.draws.chain_record import ChainRecord
from weightscape.draws.combine import combine
from weightscape.draws.diagnostics import Convergence, Diagnostics, diagnose, function_outputs
from weightscape.draws.draws import Draws
from weightscape.draws.header import Header, decode_header, encode_header
from weightscape.draws.health import Health, HealthRow, examine_chains
from weightscape.draws.leave_one_out import LeaveOneOut, leave_one_out
from weightscape.draws.lppd import RunningLppd, running_lppd
from weightscape.draws.point import best_position, point
from weightscape.draws.recorder import Examination, Place, Recorder
from weightscape.draws.sampled import Sampled
from weightscape.draws.weights import draw_weights, systematic

__all__ = [
    "ChainRecord",
    "Convergence",
    "Diagnostics",
    "Draws",
    "Examination",
    "Header",
    "Health",
    "HealthRow",
    "LeaveOneOut",
    "Place",
    "Recorder",
    "RunningLppd",
    "Sampled",
    "best_position",
    "combine",
    "decode_header",
    "diagnose",
    "draw_weights",
    "encode_header",
    "examine_chains",
    "function_outputs",
    "leave_one_out",
    "point",
    "running_lppd",
    "systematic",
]
