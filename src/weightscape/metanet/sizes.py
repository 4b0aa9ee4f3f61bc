"""How large a metanet is."""

import dataclasses

from weightscape.core import registered
from weightscape.core.checks import require, require_count

_MAY_BE_ZERO = ("num_blocks", "context_size")


@registered("metanet.Sizes")
@dataclasses.dataclass(frozen=True)
class Sizes:
    """The sizes of a metanet.

    - `width`: channels of each token.  `edge_width`: channels of each edge.
    - `num_blocks`: how many blocks.  `num_heads`: heads of attention; they share the channels.
    - `expansion`: hidden channels of the non-linear layers, as a multiple of the width.
    - `context_size`: the length of a vector that every block is told besides the time; 0 for none.
    """

    width: int = 128
    edge_width: int = 32
    num_blocks: int = 4
    num_heads: int = 8
    expansion: int = 2
    context_size: int = 0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            require_count(field.name, getattr(self, field.name), least=0 if field.name in _MAY_BE_ZERO else 1)
        asked = "`width` of Sizes must be a multiple of `num_heads`"
        came = f"{self.width} and {self.num_heads}"
        require(self.width % self.num_heads == 0, asked, came, "Change one of them.")


DEFAULT_SIZES = Sizes()
"""Those of a metanet that is given none."""
