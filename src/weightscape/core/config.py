"""Objects as data and back: how a model is stored without pickling code.

A class or a function that is registered under a name can be written as JSON (its name and its fields)
and rebuilt by calling it with those fields. Arrays keep their type; large ones travel beside the JSON.
Nothing is imported or executed on loading: a name that is not registered is an error.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from weightscape.core.checks import InputError, require

Registered = TypeVar("Registered", bound=Callable[..., Any])

_BY_NAME: dict[str, Callable[..., Any]] = {}
_NAMES: dict[int, str] = {}

_INLINE_SIZE = 16


class Encoded(NamedTuple):
    """`tree` is plain JSON; `arrays` holds what is too large for it, by name."""

    tree: Any
    arrays: dict[str, np.ndarray]


def register(name: str, thing: Registered) -> Registered:
    """Make a class or function storable under `name`, for instance `"networks.MLP"`."""
    taken = _BY_NAME.get(name, thing) is not thing
    require(not taken, f"A registered name must be new, and {name!r} is in use", thing, "Choose another name.")
    _BY_NAME[name] = thing
    _NAMES[id(thing)] = name
    return thing


def registered(name: str) -> Callable[[Registered], Registered]:
    """`register` as a decorator."""
    return lambda thing: register(name, thing)


def encode(thing: object) -> Encoded:
    """Write an object as JSON and arrays.

    Example:
    >>> from weightscape.priors import Normal
    >>> encode(Normal(scale=2.0)).tree["type"]
    'priors.Normal'
    """
    arrays: dict[str, np.ndarray] = {}
    return Encoded(_encode(thing, arrays), arrays)


def decode(tree: Any, arrays: Mapping[str, np.ndarray] | None = None) -> Any:
    """Rebuild what `encode` wrote."""
    return _decode(tree, arrays or {})


def _encode(thing: object, arrays: dict[str, np.ndarray]) -> Any:
    if thing is None or isinstance(thing, (bool, int, str)):
        return thing
    if isinstance(thing, float):
        return {"float": repr(thing)}
    if isinstance(thing, (jax.Array, np.ndarray, np.generic)):
        return _encode_array(np.asarray(thing), arrays)
    if isinstance(thing, (tuple, list)) and not hasattr(thing, "_fields"):
        return {"tuple": [_encode(item, arrays) for item in thing]}
    if isinstance(thing, dict):
        return {"dict": {key: _encode(value, arrays) for key, value in thing.items()}}
    if id(thing) in _NAMES:
        return {"function": _NAMES[id(thing)]}
    return _encode_object(thing, arrays)


def _encode_object(thing: object, arrays: dict[str, np.ndarray]) -> Any:
    name = _NAMES.get(id(type(thing)))
    if name is None or not dataclasses.is_dataclass(thing):
        raise InputError(
            f"Stored objects must be made of registered parts, got {thing!r}. Use a named part, or register "
            "yours with `weightscape.core.register(name, part)`; a network may also be passed to "
            "`load(path, network=...)`."
        )
    fields = {f.name: _encode(getattr(thing, f.name), arrays) for f in dataclasses.fields(thing) if f.init}
    return {"type": name, "fields": fields}


def _encode_array(array: np.ndarray, arrays: dict[str, np.ndarray]) -> Any:
    if array.size > _INLINE_SIZE:
        name = f"array{len(arrays)}"
        arrays[name] = array
        return {"array": name}
    flat = [item if isinstance(item, (int, bool)) else repr(item) for item in array.ravel().tolist()]
    return {"values": flat, "shape": list(array.shape), "dtype": array.dtype.name}


def _decode(tree: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if tree is None or isinstance(tree, (bool, int, str)):
        return tree
    match tree:
        case {"float": text}:
            return float(text)
        case {"values": values, "shape": shape, "dtype": dtype}:
            return np.array([float(v) if isinstance(v, str) else v for v in values], dtype).reshape(shape)
        case {"array": name}:
            require(
                name in arrays,
                "A stored array must be beside its description",
                f"no {name!r}",
                "The folder is incomplete; restore it.",
            )
            return np.asarray(arrays[name])
        case {"tuple": items}:
            return tuple(_decode(item, arrays) for item in items)
        case {"dict": items}:
            return {key: _decode(value, arrays) for key, value in items.items()}
        case {"function": name}:
            return _lookup(name)
        case {"type": name, "fields": fields}:
            return _rebuild(name, {key: _decode(value, arrays) for key, value in fields.items()})
    raise InputError(f"A stored object must be one of ours, got {str(tree)[:80]}. The file is foreign or damaged.")


def _rebuild(name: str, fields: dict[str, Any]) -> Any:
    try:
        return _lookup(name)(**fields)
    except TypeError as error:
        raise InputError(
            f"A stored {name} must have fields that this version knows, got {', '.join(fields)}. "
            "It was written by another version of weightscape; use that one."
        ) from error


def _lookup(name: str) -> Callable[..., Any]:
    if name not in _BY_NAME:
        raise InputError(
            f"A stored part must be registered, got {name!r}. Import or register it before loading; a network "
            "may be passed to `load(path, network=...)`."
        )
    return _BY_NAME[name]
