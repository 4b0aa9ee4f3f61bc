"""Checks of the settings that gradient-based samplers share."""

from typing import Any

from weightscape.core.checks import require_count, require_fraction, require_positive, require_type
from weightscape.inference.mcmc.mass import Mass


def require_chain_settings(method: Any) -> None:
    """Raise unless the fields of a method that it has in common with HMC make sense."""
    name = type(method).__name__
    for field in ("num_chains", "num_draws", "thin"):
        require_count(f"`{field}` of {name}", getattr(method, field))
    require_count(f"`num_warmup` of {name}", method.num_warmup, least=0)
    require_positive(f"`step_size` of {name}", method.step_size)
    require_positive(f"`temperature` of {name}", method.temperature)
    remedy = "Pass UnitMass(), DiagonalMass() or LowRankMass()."
    require_type(isinstance(method.mass, Mass), f"`mass` of {name} must be a Mass", repr(method.mass), remedy)


def require_target(method: Any) -> None:
    """Raise unless `target_acceptance` is a fraction."""
    require_fraction(f"`target_acceptance` of {type(method).__name__}", float(method.target_acceptance))
