"""Flow matching on a population: learn to draw networks like those that training ends in, from examples alone.

    loss = E_{t, x₀, x₁} ‖ v(t, x_t) − u_t ‖² / d,      x_t, u_t on the path of a geometry (`geometries`, `paths`)

There is no density to correct towards, so what a flow has learned is judged by its networks: their accuracy, their
diversity, and whether they are new (`evaluate.memorisation`). The velocity field commutes with permutations and signs;
rescalings are gone where the geometry normalises, and learned where it does not.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from weightscape.core import PRNGKey, registered
from weightscape.core.checks import (
    InputError,
    require,
    require_count,
    require_fraction,
    require_positive,
    require_type,
)
from weightscape.core.devices import on_host
from weightscape.core.facts import Facts
from weightscape.core.numbers import number
from weightscape.draws import Draws, Header
from weightscape.flow.alignment import Aligned
from weightscape.flow.architecture import Architecture, Equivariant, Setting
from weightscape.flow.conditions import Conditions
from weightscape.flow.couplings import Coupling, Independent, with_costs
from weightscape.flow.descent import descent_of
from weightscape.flow.divergence import Divergence, Exact
from weightscape.flow.encodings import Encoding
from weightscape.flow.fields import Field
from weightscape.flow.forgetful_steps import ForgetfulSteps
from weightscape.flow.geometries import Euclidean, Geometric, Geometry, reach_of_weights, size_of_weights
from weightscape.flow.given import Given
from weightscape.flow.objective import Objective, OfVelocity, Times, UniformTimes
from weightscape.flow.orbits import orbits
from weightscape.flow.population_flow import PopulationFlow
from weightscape.flow.source import Source, WhitenedSource
from weightscape.flow.sphere_source import SphereSource
from weightscape.flow.target import Target
from weightscape.flow.told_examples import fitted_encoding, known_values, told_examples
from weightscape.flow.training import train_flow
from weightscape.flow.training_set import TrainingSet, key_with_draws, training_set
from weightscape.flow.transport import FixedSteps, Solver, require_solver
from weightscape.inference.approximation_run import finished_approximation, keep_approximation
from weightscape.inference.method import Circumstances, DensityMethod, settings
from weightscape.metanet.fixed import Fixed
from weightscape.posterior import Posterior
from weightscape.symmetry import Symmetry, of_function


def unguided() -> Equivariant:
    """A metanet that sees weights alone: here no likelihood says where networks should be."""
    return Equivariant(guided=False)


@registered("flow.PopulationMatching")
class PopulationMatching(DensityMethod):
    """A flow to a population; `run(key, posterior, draws=population)`, with the posterior that it was trained on.

    - `geometry`: `Euclidean()`, `Normalized()` or `Geometric()`.
    - `num_steps`, `batch_size`, `learning_rate`, `average`, `largest_norm`: the training, as in FlowMatching.
    - `architecture`: `Equivariant(guided=False)`, `Revised()`, which looks at the data, `Plain()` or `Principal()`.
    - `coupling`, `times`: the pairs that it learns from; optimal transport has the geometry's own costs, an aligned
      coupling matches units by straight distances in all of them.
    - `solver`, `divergence`: how the flow is solved afterwards; `ForgetfulSteps()` for better networks without density.
    - `held_out`: the share of the runs whose loss says when training was at its best.
    - `conditions`: what is known of each network, `ByLabel`, `ByProperty` or `ByLoss`; `flow.given(value)` is then the
      flow to networks of a value. None for none.
    """

    geometry: Geometry = eqx.field(default_factory=Geometric)
    num_steps: int = eqx.field(static=True, default=4000)
    batch_size: int = eqx.field(static=True, default=256)
    learning_rate: Float[Array, ""] = eqx.field(default=1e-3, converter=number)
    average: Float[Array, ""] = eqx.field(default=0.999, converter=number)
    largest_norm: Float[Array, ""] = eqx.field(default=1.0, converter=number)
    architecture: Architecture = eqx.field(default_factory=unguided)
    coupling: Coupling = eqx.field(default_factory=Independent)
    times: Times = eqx.field(default_factory=UniformTimes)
    solver: Solver = eqx.field(default_factory=FixedSteps)
    divergence: Divergence = eqx.field(default_factory=Exact)
    held_out: float = eqx.field(static=True, default=0.1)
    conditions: Conditions | None = None

    def __check_init__(self):
        asked, remedy = "`geometry` of PopulationMatching must be a Geometry", "Pass `Euclidean()`, say."
        require_type(isinstance(self.geometry, Geometry), asked, type(self.geometry).__name__, remedy)
        asked, remedy = "`conditions` of PopulationMatching must be Conditions or None", "Pass `ByLoss()`, say."
        require_type(isinstance(self.conditions, Conditions | None), asked, type(self.conditions).__name__, remedy)
        require_count("`num_steps` of PopulationMatching", self.num_steps)
        require_count("`batch_size` of PopulationMatching", self.batch_size, least=2)
        require_positive("`learning_rate` of PopulationMatching", self.learning_rate)
        require_positive("`largest_norm` of PopulationMatching", self.largest_norm)
        require_fraction("`average` of PopulationMatching", float(self.average))
        require_fraction("`held_out` of PopulationMatching", self.held_out)
        asked = "`architecture` of PopulationMatching must not be guided by a posterior"
        remedy = "Pass `guided=False`, or `Revised()`, which looks at the data in a way that fits populations."
        require(not getattr(self.architecture, "guided", False), asked, "one that is", remedy)
        fits = self.conditions is None or isinstance(self.coupling, Independent | Aligned)
        asked = "`coupling` of a flow with conditions must keep the order of networks"
        remedy = "Use `Independent()` or `Aligned()`."
        require_type(fits, asked, type(self.coupling).__name__, remedy)
        self.require_solver(self.solver)

    def require_solver(self, solver: Solver) -> None:
        """Raise where a solver is none for the geometry, or forgets sources that velocities are not made for."""
        require_solver(solver)
        if isinstance(solver, ForgetfulSteps):
            asked, remedy = "A flow with ForgetfulSteps must be", "Use FixedSteps, or train such a flow."
            came = f"{type(self.geometry).__name__} with {type(self.coupling).__name__} pairs"
            fits = isinstance(self.geometry, Euclidean) and isinstance(self.coupling, Independent)
            require_type(fits, f"{asked} Euclidean with Independent pairs", came, remedy)
        self.geometry.require_solver(solver)

    @property
    def gap_every(self) -> int:
        """J is never measured: a population has no known density."""
        return 0

    def approximate(self, key: PRNGKey, posterior: Posterior, around: Circumstances) -> PopulationFlow:
        values = known_values(self.conditions, posterior, around.draws)
        key = key_with_draws(key, around.draws, None if self.conditions is None else self.conditions.noted)
        finished = finished_approximation(key, self, posterior, around)
        if finished is not None:
            return finished
        draws = _given(around)
        key_model, key_training = jax.random.split(key)
        symmetry = of_function(posterior)
        source, given = self.fitted(symmetry, posterior, draws, mixed=values is not None)
        encoding = fitted_encoding(self.conditions, values, given)
        with on_host():
            model = self.model(key_model, symmetry, Target(posterior, source), jnp.asarray(given.train), encoding)
        flow = self.flow(Header.of(posterior), posterior, model, source)
        reach = reach_of_weights(given.train, orbits(symmetry.without_scaling()))
        flow = dataclasses.replace(flow, reach=jnp.asarray(reach, source.layout.dtype))
        coupling = with_costs(self.coupling, self.geometry.costs(source))
        descent = descent_of(
            self,
            flow,
            coupling.bind(symmetry.without_scaling(), source.layout),
            given,
            *told_examples(given, self.batch_size, encoding, values),
            dropped=0.0 if self.conditions is None else self.conditions.dropped,
        )
        flow = train_flow(key_training, self, flow, descent, given.held_out, around)
        told = {"num_train": len(given.train), "num_held_out": len(given.held_out), "left_out": given.num_left_out}
        flow = dataclasses.replace(flow, facts=flow.facts.plus(**told))
        keep_approximation(key, self, flow, around)
        return flow

    def fitted(
        self, symmetry: Symmetry, posterior: Posterior, draws: Draws, *, mixed: bool = False
    ) -> tuple[Source, TrainingSet]:
        """The geometry's source, in which weights have the size that they have in training, and what training sees."""
        layout, labels = Header.of(posterior).layout(), orbits(symmetry.without_scaling())
        plain = self.geometry.source(symmetry, layout, jnp.ones((layout.size,), layout.dtype))
        given = training_set(plain, draws, self.held_out, mixed=mixed)
        if isinstance(plain, SphereSource):
            plain.require_points(np.concatenate([given.train, given.held_out]), labels)
        source = self.geometry.source(symmetry, layout, jnp.asarray(size_of_weights(given.train, labels), layout.dtype))
        assert isinstance(source, WhitenedSource | SphereSource)
        scale = np.asarray(source.scale)
        return source, given._replace(train=given.train / scale, held_out=given.held_out / scale)

    def model(
        self,
        key: PRNGKey,
        symmetry: Symmetry,
        target: Target,
        draws: Float[Array, "draw weight"],
        encoding: Encoding | None = None,
    ) -> Field:
        """A field that has not been trained.

        - `encoding`: of the conditions, if there are some; without it, one whose numbers are to be filled in.
        """
        kept, source, architecture = symmetry.without_scaling(), target.source, self.architecture
        if self.conditions is not None:
            encoding = self.conditions.blank() if encoding is None else encoding
            architecture = architecture.told(encoding.size)
        nothing = jnp.zeros((source.layout.size,), source.layout.dtype)
        setting = Setting(target, self.geometry.path(source), kept, architecture.labels(kept), nothing, draws)
        field = self.geometry.field(source, architecture.build(key, setting))
        return field if encoding is None else Given(field, Fixed(encoding))

    def flow(self, header: Header, posterior: Posterior | None, model: eqx.Module, source: Source) -> PopulationFlow:
        """The flow of a model, whose weights may go anywhere."""
        objective = Objective(self.geometry.path(source), OfVelocity(), self.times)
        reach = jnp.full((source.layout.size,), jnp.inf, source.layout.dtype)
        return PopulationFlow(header, posterior, None, Facts(**settings(self)), model, objective, source, reach,
                              self.solver, self.divergence, self)  # fmt: skip


def _given(around: Circumstances) -> Draws:
    if around.draws is None:
        raise InputError(
            "PopulationMatching must learn from networks, got none. Pass `draws=Population(...).run(...)`."
        )
    asked, remedy = "`init` of PopulationMatching must be None", "Leave it out; training begins anew."
    require(around.init is None, asked, type(around.init).__name__, remedy)
    return around.draws
