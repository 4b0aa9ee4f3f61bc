"""Choosing a model and a method for someone who has data and no opinions.

The model is a small perceptron with a normal prior; regression infers its noise scale, classification uses a softmax.
The method is HMC, the gold standard, where its cost fits into the time:

    seconds ≈ start-up + transitions × leapfrog steps × (overhead + 6 × chains × points × weights / flops of all cores)

and a deep ensemble otherwise.
"""

import contextlib
import dataclasses
import json
from typing import NamedTuple

import jax

from weightscape.core.checks import InputError, require, require_known
from weightscape.core.choices import HAS_NAMES
from weightscape.core.tree import size
from weightscape.data import Dataset
from weightscape.flow import FlowAfter, FlowMatching
from weightscape.flow.after import small_flow
from weightscape.inference import HMC, METHODS, DeepEnsemble, DensityMethod, Method
from weightscape.likelihoods import Categorical, Gaussian, HeteroscedasticGaussian, Likelihood
from weightscape.networks import MLP
from weightscape.posterior import Model, Posterior
from weightscape.priors import Gamma, Normal
from weightscape.report.numbers import counted, duration

KNOWN: dict[str, type[Method]] = {**METHODS, "flow": FlowAfter}
"""Methods by name: those of inference, and a flow on the draws of HMC."""

DEFAULT_MINUTES = 4.0
_START_UP_SECONDS = 15.0
_OVERHEAD_SECONDS = 100e-6
_FLOPS_OF_A_CORE = 2e9
_FULL_BATCH = 4096
_BATCH_SIZE = 256


class ModelOptions(NamedTuple):
    """What the user said about the model; `noise` is a number in the target's units, "inferred" or None."""

    hidden: str = "16"
    activation: str = "tanh"
    prior_scale: float = 1.0
    noise: str | None = None
    heteroscedastic: bool = False


class MethodOptions(NamedTuple):
    """What the user said about the method; None leaves the choice to us. `settings` are texts `name=value`.

    - `sampler`: what makes the draws that a flow learns from, where the method is one.
    """

    name: str | None = None
    chains: int | None = None
    draws: int | None = None
    minutes: float | None = None
    settings: tuple[str, ...] = ()
    sampler: type[Method] = HMC


class Choice(NamedTuple):
    """A method, and one sentence on why it was chosen."""

    method: Method
    why: str


def choose_model(dataset: Dataset, options: ModelOptions) -> Model:
    """The model that was asked for, with sensible values for the rest."""
    network = MLP(hidden=_widths(options.hidden), activation=options.activation)
    return Model(network, _likelihood(dataset, options), Normal(scale=options.prior_scale))


def choose_method(posterior: Posterior, options: MethodOptions) -> Choice:
    """The method that was asked for, or the best one whose cost fits into the time."""
    if options.name is not None:
        require_known("The method", options.name, KNOWN)
        return Choice(_build(KNOWN[options.name], posterior, options), f"{options.name} was asked for.")
    method = _build(HMC, posterior, options)
    assert isinstance(method, HMC)
    seconds, limit = expected_seconds(method, posterior), 60 * (options.minutes or DEFAULT_MINUTES)
    work = f"{counted(posterior.num_points, 'point')} × {counted(_num_weights(posterior), 'weight')}"
    if seconds <= limit:
        return Choice(method, f"HMC, since {work} take it about {duration(seconds)}, within {duration(limit)}.")
    ensemble = _build(DeepEnsemble, posterior, options._replace(draws=None))
    remedy = "`--method hmc` or a larger `--minutes` overrides this."
    why = f"a deep ensemble, since HMC on {work} would take about {duration(seconds)}, beyond {duration(limit)}."
    return Choice(ensemble, f"{why} {remedy}")


def expected_seconds(method: HMC, posterior: Posterior) -> float:
    """A rough cost of HMC on these cores; the start-up is mostly compilation."""
    gradients = (method.num_warmup + method.num_draws * method.thin) * method.num_leapfrog
    flops = 6 * method.num_chains * posterior.num_points * _num_weights(posterior)
    return _START_UP_SECONDS + gradients * (_OVERHEAD_SECONDS + flops / (_FLOPS_OF_A_CORE * len(jax.devices())))


def _build(kind: type[Method], posterior: Posterior, options: MethodOptions) -> Method:
    if kind is FlowAfter:
        return _flow_after(posterior, options)
    known = {field.name for field in dataclasses.fields(kind)}
    settings: dict[str, int] = {}
    chosen = (
        ("--chains", options.chains, ("num_chains", "num_members", "num_runs")),
        ("--draws", options.draws, ("num_draws",)),
    )
    for option, value, fields in chosen:
        field = next((name for name in fields if name in known), None)
        if option == "--draws" and issubclass(kind, DensityMethod):
            continue  # how many draws are taken from the density, once there is one
        if value is not None and field is None:
            raise InputError(f"`{option}` must suit the method, got {kind.__name__}, which has none. Leave it out.")
        if value is not None and field is not None:
            settings[field] = value
    if "batch_size" in known and posterior.num_points > _FULL_BATCH:
        settings["batch_size"] = _BATCH_SIZE
    return kind(**{**settings, **dict(parse_setting(text, kind, known) for text in options.settings)})


def _flow_after(posterior: Posterior, options: MethodOptions) -> FlowAfter:
    """Chains are the sampler's; a setting says whose it is: `sampler.num_draws=1000`, `flow.num_steps=2000`."""
    settings: dict[str, list[str]] = {"sampler": [], "flow": []}
    for text in options.settings:
        part, _, rest = text.partition(".")
        require_known("The part of a flow that a setting such as flow.num_steps=500 begins with", part, settings)
        settings[part].append(rest)
    asked = MethodOptions(chains=options.chains, settings=tuple(settings["sampler"]))
    flow, known = small_flow(), {field.name for field in dataclasses.fields(FlowMatching)}
    changed = dict(parse_setting(text, FlowMatching, known) for text in settings["flow"])
    return FlowAfter(_build(options.sampler, posterior, asked), dataclasses.replace(flow, **changed))


def parse_setting(text: str, kind: type, known: set[str]) -> tuple[str, float | int | bool | str | None]:
    """One `--set name=value`; a value is a number, true, false or null, or the name of a choice that has names."""
    name, _, value = text.partition("=")
    require_known(f"A setting of {kind.__name__}", name, known)
    if next(field for field in dataclasses.fields(kind) if field.name == name).metadata.get(HAS_NAMES):
        return name, value
    with contextlib.suppress(json.JSONDecodeError):
        parsed = json.loads(value)
        if parsed is None or isinstance(parsed, (int, float)):
            return name, parsed
    asked = f"`--set {name}` must have a number, true, false or null"
    raise InputError(f"{asked}, got {value!r}. Write `--set {name}=1`, say; objects can be set in Python.")


def _num_weights(posterior: Posterior) -> int:
    return size(posterior.model.parameters_like(posterior.x[:1]).network)


def _likelihood(dataset: Dataset, options: ModelOptions) -> Likelihood:
    if dataset.task == "classification":
        given = options.noise is not None or options.heteroscedastic
        remedy = "Leave out `--noise` and `--heteroscedastic`, or pass `--task regression`."
        require(not given, "Noise options must go with a regression", "a classification", remedy)
        return Categorical(num_classes=len(dataset.classes or ()))
    if options.heteroscedastic:
        asked = "`--heteroscedastic` must stand alone, since the network gives the noise"
        require(options.noise is None, asked, f"`--noise {options.noise}`", "Leave one out.")
        return HeteroscedasticGaussian()
    if options.noise in (None, "inferred"):
        return Gaussian(scale=Gamma(0.5, 1.0))
    return Gaussian(scale=_noise(str(options.noise)) / _target_scale(dataset))


def _noise(text: str) -> float:
    remedy = "Pass a positive number in the target's units, or `inferred`."
    try:
        noise = float(text)
    except ValueError as error:
        raise InputError(f"`--noise` must be a number, got {text!r}. {remedy}") from error
    require(0 < noise < float("inf"), "`--noise` must be positive and finite", text, remedy)
    return noise


def _target_scale(dataset: Dataset) -> float:
    scaling = dataset.train.scaling
    return 1.0 if scaling is None or scaling.y_scale is None else float(scaling.y_scale)


def _widths(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        remedy = "Pass units of each hidden layer, such as `16` or `32,32`; an empty text makes a linear model."
        raise InputError(f"`--hidden` must be whole numbers, got {text!r}. {remedy}") from error
