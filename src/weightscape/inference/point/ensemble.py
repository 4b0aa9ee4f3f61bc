"""Points of high posterior density: one (`MAP`), or several from different starts (`DeepEnsemble`).

    θ_MAP = argmax log p(D, θ)

The maximum is taken over positions, so where a scale is inferred it is the mode of its logarithm, the one that the
Laplace approximation expands around. Weight decay is the normal prior. A point is not a posterior: it has no
epistemic uncertainty, and an ensemble's spread is that of its starts.

Reference: Lakshminarayanan, Pritzel & Blundell (2017), Simple and scalable predictive uncertainty estimation.
"""

import equinox as eqx
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, registered
from weightscape.core.numbers import number
from weightscape.draws import Draws
from weightscape.inference.method import Circumstances, Method
from weightscape.inference.point.optimise import Training, climb
from weightscape.posterior import Posterior


@registered("inference.MAP")
class MAP(Method):
    """The mode of the posterior, found by Adam.

    - `num_steps`, `learning_rate`: n and η of the cosine schedule.
    - `batch_size`: points in each gradient; None takes all.
    """

    num_steps: int = eqx.field(static=True, default=2000)
    learning_rate: Float[Array, ""] = eqx.field(default=0.02, converter=number)
    batch_size: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        self._training().check("MAP")

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Draws:
        return climb(key, self, posterior, self._training(), around)

    def _training(self) -> Training:
        return Training(1, self.num_steps, self.learning_rate, self.batch_size)


@registered("inference.DeepEnsemble")
class DeepEnsemble(Method):
    """Modes from `num_members` random starts, trained side by side; each is a chain of one draw.

    - `num_steps`, `learning_rate`, `batch_size`: as in MAP.
    """

    num_members: int = eqx.field(static=True, default=10)
    num_steps: int = eqx.field(static=True, default=2000)
    learning_rate: Float[Array, ""] = eqx.field(default=0.02, converter=number)
    batch_size: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        self._training().check("DeepEnsemble")

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Draws:
        return climb(key, self, posterior, self._training(), around)

    def _training(self) -> Training:
        return Training(self.num_members, self.num_steps, self.learning_rate, self.batch_size)
