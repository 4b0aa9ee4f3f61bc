"""Flow matching: learn to draw networks from a posterior, from draws of it.

A velocity field is trained to carry the prior to the posterior (`objective`); what comes out is a `Flow`, a density
that can be sampled in milliseconds, evaluated, and corrected. By default the field commutes with the posterior's own
symmetry, sees the gradient of the likelihood, and learns the pull of the data (`pull`).

Reference: Lipman et al. (2023), Flow matching for generative modeling.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, registered
from weightscape.core.checks import InputError, require, require_count, require_fraction, require_positive
from weightscape.core.devices import on_host
from weightscape.core.facts import Facts
from weightscape.core.numbers import number
from weightscape.draws import Header
from weightscape.flow.architecture import Architecture, Equivariant, Revised, Setting, setting_of
from weightscape.flow.couplings import Coupling, Independent
from weightscape.flow.descent import Descent, Examples, descent_of
from weightscape.flow.divergence import Divergence, Exact
from weightscape.flow.fields import looking_at
from weightscape.flow.flow import Flow
from weightscape.flow.objective import Objective, OfPull, Prediction, Times, UniformTimes
from weightscape.flow.paths import Path, Trigonometric
from weightscape.flow.pull_field import Curvature, PullField
from weightscape.flow.source import Source, WhitenedSource, source_of
from weightscape.flow.swing import Swing, stiffness_of
from weightscape.flow.target import Target
from weightscape.flow.training import train_flow
from weightscape.flow.training_set import TrainingSet, key_with_draws, padded, training_set
from weightscape.flow.transport import FixedSteps, Solver
from weightscape.inference.approximation import Approximation
from weightscape.inference.approximation_run import finished_approximation, keep_approximation
from weightscape.inference.method import Circumstances, DensityMethod, settings
from weightscape.metanet.fixed import Fixed
from weightscape.posterior import Posterior


@registered("flow.FlowMatching")
class FlowMatching(DensityMethod):
    """A flow from the prior to the posterior; `run(key, posterior, draws=draws)`.

    - `num_steps`, `batch_size`, `learning_rate`: the training.  `average`: the share of the moving average that is kept
      in each step.  `largest_norm`: to which gradients are clipped.
    - `architecture`: `Equivariant()`, `Plain()` or `Principal()`.
    - `prediction`: what the model says: `OfPull()`, `OfVelocity()` or `OfTarget()`.
    - `path`, `coupling`, `times`: the pairs that it learns from.
    - `num_leapfrog`: gradients of the likelihood over which the pull of each pair is averaged (`swing`); 0 for none.
    - `solver`, `divergence`: how the flow is solved afterwards.
    - `held_out`: the share of the chains that are held out, for the loss and J.
    - `gap_every`: steps after which J is measured during training; None for the end only, 0 for never.

    `init` may be a Flow with the same architecture, whose training then goes on with these draws and settings.
    """

    num_steps: int = eqx.field(static=True, default=4000)
    batch_size: int = eqx.field(static=True, default=256)
    learning_rate: Float[Array, ""] = eqx.field(default=1e-3, converter=number)
    average: Float[Array, ""] = eqx.field(default=0.999, converter=number)
    largest_norm: Float[Array, ""] = eqx.field(default=1.0, converter=number)
    architecture: Architecture = eqx.field(default_factory=Equivariant)
    prediction: Prediction = eqx.field(default_factory=OfPull)
    path: Path = eqx.field(default_factory=Trigonometric)
    coupling: Coupling = eqx.field(default_factory=Independent)
    times: Times = eqx.field(default_factory=UniformTimes)
    num_leapfrog: int = eqx.field(static=True, default=0)
    solver: Solver = eqx.field(default_factory=FixedSteps)
    divergence: Divergence = eqx.field(default_factory=Exact)
    held_out: float = eqx.field(static=True, default=0.1)
    gap_every: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        require_count("`num_steps` of FlowMatching", self.num_steps)
        require_count("`batch_size` of FlowMatching", self.batch_size, least=2)
        require_positive("`learning_rate` of FlowMatching", self.learning_rate)
        require_positive("`largest_norm` of FlowMatching", self.largest_norm)
        require_fraction("`average` of FlowMatching", float(self.average))
        require_fraction("`held_out` of FlowMatching", self.held_out)
        require_count("`num_leapfrog` of FlowMatching", self.num_leapfrog, least=0)
        asked, remedy = "`architecture` of FlowMatching must learn one answer", "Pass `Equivariant()`, which is guided."
        require(not isinstance(self.architecture, Revised), asked, "Revised, for populations", remedy)
        pulled = isinstance(self.prediction, OfPull)
        free = isinstance(self.coupling, Independent)
        asked = "`coupling` of FlowMatching must be Independent() where pulls are learned"
        require(free or not pulled, asked, type(self.coupling).__name__, "Pass prediction=OfVelocity().")

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> Approximation:
        key = key_with_draws(key, around.draws)
        finished = finished_approximation(key, self, posterior, around)
        if finished is not None:
            return finished
        if around.draws is None:
            raise InputError(
                "FlowMatching must learn from draws, got none. Pass `draws=HMC(...).run(...)`, or use `grow_flow`, "
                "which makes its own."
            )
        key_model, key_training = jax.random.split(key)
        target = Target(posterior, self.source(posterior))
        given = training_set(target.source, around.draws, self.held_out)
        gradients = target.gradients(given.train)
        with on_host():
            setting = setting_of(self.architecture, target, self.path, jnp.asarray(given.train), gradients)
            model = self.model(key_model, setting) if around.init is None else _continued(around.init, self, target)
        flow = self.flow(Header.of(posterior), posterior, model, target.source)
        descent = self._descent(flow, setting, given, gradients)
        flow = train_flow(key_training, self, flow, descent, given.held_out, around)
        told = {"num_train": len(given.train), "num_held_out": len(given.held_out), "left_out": given.num_left_out}
        flow = dataclasses.replace(flow, facts=flow.facts.plus(**told))
        keep_approximation(key, self, flow, around)
        return flow

    def source(self, posterior: Posterior) -> Source:
        """Where draws start: the prior; a normal of its size, where pulls are learned and the prior is none."""
        return WhitenedSource.around(posterior) if isinstance(self.prediction, OfPull) else source_of(posterior)

    def model(self, key: PRNGKey, setting: Setting) -> eqx.Module:
        """A model that has not been trained."""
        field = self.architecture.build(key, setting)
        if not isinstance(self.prediction, OfPull):
            return field
        count = np.bincount(setting.labels)
        values = jnp.asarray(np.bincount(setting.labels, np.asarray(setting.information)) / count)
        curvature = Curvature.of(values.astype(setting.information.dtype), jnp.asarray(setting.labels))
        return PullField(field, Fixed(setting.scale), curvature)

    def flow(self, header: Header, posterior: Posterior | None, model: eqx.Module, source: Source) -> Flow:
        """The flow of a model."""
        objective = Objective(self.path, self.prediction, self.times)
        return Flow(header, posterior, None, Facts(**settings(self)), model, objective, source, self.solver,
                    self.divergence, self)  # fmt: skip

    def _descent(self, flow: Flow, setting: Setting, given: TrainingSet, gradients: np.ndarray) -> Descent:
        held_out = padded(given.held_out, self.batch_size)
        return descent_of(
            self,
            flow,
            self.coupling.bind(setting.symmetry, flow.source.layout),
            given,
            Examples(jnp.asarray(given.train), jnp.asarray(gradients)),
            Examples(held_out, jnp.asarray(setting.target.gradients(np.asarray(held_out)))),
            swing=self._swing(setting, given, gradients),
        )

    def _swing(self, setting: Setting, given: TrainingSet, gradients: np.ndarray) -> Swing | None:
        if self.num_leapfrog == 0 or not isinstance(self.prediction, OfPull):
            return None
        return Swing(setting.target, stiffness_of(given.train, gradients, setting.labels), self.num_leapfrog)


def _continued(init: object, method: FlowMatching, target: Target) -> eqx.Module:
    asked = "`init` of FlowMatching must be a Flow, or None"
    if not isinstance(init, Flow):
        raise InputError(f"{asked}, got {type(init).__name__}. Pass what an earlier FlowMatching returned.")
    came, remedy = init.method.architecture, "Pass the architecture and the prediction that it was made with."
    same = came == method.architecture and type(init.method.prediction) is type(method.prediction)
    require(same, "A flow that goes on must keep its architecture and prediction", came, remedy)
    return looking_at(init.model, method.architecture.seen(target))
