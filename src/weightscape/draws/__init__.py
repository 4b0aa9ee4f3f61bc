"""Draws: the one thing that crosses from making weights to using them."""

from weightscape.draws.draws import Draws
from weightscape.draws.health import Health, examine_chains
from weightscape.draws.recorder import Recorder
from weightscape.draws.sampled import Sampled

__all__ = ["Draws", "Health", "Recorder", "Sampled", "examine_chains"]
