"""Keywords of a function that moved into one of its config arguments: taken for one release, with a warning.

    @old_keywords("run", Run, {"threads": "threads", "tell": "on_event"})
    def train(data, *, run: Run = Run()) -> Model: ...

takes `train(data, threads=2)` as `train(data, run=Run(threads=2))`. The signature stays that of the function.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from ..errors import ConfigError

P = ParamSpec("P")
T = TypeVar("T")


def old_keywords(
    parameter: str,
    config: Callable[..., Any],
    names: Mapping[str, str],
    reads: Mapping[str, Callable[[Any], Any]] | None = None,
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Take the keywords of `names` as fields of `parameter`, a `config`; None stands for its default.

    `reads` says how the value of an old keyword is read where it is not that of the field.
    """

    def wrap(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def called(*args: Any, **given: Any) -> T:
            old = {name: given.pop(name) for name in names if name in given}
            if not old:
                return function(*args, **given)
            spelled = f"{parameter}={config.__name__}({', '.join(f'{names[name]}=…' for name in old)})"
            if parameter in given:
                raise ConfigError(
                    f"{', '.join(f'{name}=' for name in old)} beside {parameter}= says the same twice; write {spelled}."
                )
            warnings.warn(
                f"{function.__name__}({', '.join(f'{name}=…' for name in old)}) is the old spelling; write {spelled}.",
                DeprecationWarning,
                stacklevel=2,
            )
            read = {name: (reads or {}).get(name, _as_it_is)(value) for name, value in old.items()}
            given[parameter] = config(**{names[name]: value for name, value in read.items() if value is not None})
            return function(*args, **given)

        called.__dict__["__signature__"] = inspect.signature(function)
        return called

    return wrap


def _as_it_is(value: Any) -> Any:
    return value
