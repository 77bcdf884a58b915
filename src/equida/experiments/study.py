"""A study of optuna: which setting is tried next, and what is known of those that were tried.

Everything that touches optuna is here, and only the process that leads a search opens its storage:
workers need neither.
"""

import contextlib
import hashlib
import math
import statistics
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equida.errors import InputError, require
from equida.fields import specs
from equida.methods import METHODS, Range, default_config, split_name
from equida.plugins import short_name
from equida.runs.search import State, Tried
from equida.runs.variant import changed_hyperparameters

if TYPE_CHECKING:
    import optuna

DIGITS = 4
"""Values have so many significant digits: finer ones make no difference, and commands are read."""
ATTEMPTS, RETRY_SECONDS = 5, 0.5
"""How often the tables of a database are asked for, and how long to wait in between."""
FEWEST_FOR_MEDIAN = 5
"""As long as fewer runs have finished, none is stopped."""


@dataclass(frozen=True)
class Searched:
    """A hyper-parameter with the range that its dataclass declares."""

    name: str
    """As overrides call it: `r`, or `nsm.r` in a composition."""
    kind: type
    range: Range
    default: float


def search_space(method: str, benchmark: str | None = None) -> list[Searched]:
    """The hyper-parameters of a method that a search varies: those that declare a range.

    One whose default is None is left to the data, as by default, and `prior_strength` does nothing
    beside the uniform prior.

    >>> [(one.name, one.range.low, one.range.high) for one in search_space("nsm")]
    [('trade_off', 0.5, 2.5), ('r', 0.0, 1.0), ('alpha', 1.0, 2.5)]
    """
    parts, found = split_name(method), []
    for part in parts:
        config = default_config(part, benchmark)
        idle = {"prior_strength"} if getattr(config, "prior", "") == "uniform" else set()
        for spec in specs(METHODS[part].config).values():
            default = getattr(config, spec.name)
            if isinstance(spec.bounds, Range) and default is not None and spec.name not in idle:
                name = spec.name if len(parts) == 1 else f"{short_name(part)}.{spec.name}"
                found.append(Searched(name, spec.kind, spec.bounds, default))
    return found


@dataclass(frozen=True)
class Setting:
    """A setting that is to be tried."""

    number: int
    method: str
    overrides: Mapping[str, Any]
    default: bool


class Study:
    """The settings of a search, kept in a database that several machines may share.

    The first settings are the defaults of all methods. What comes next depends on the seed, the
    number of the setting and what has ended by then, so that a search that was interrupted
    continues as if it had not been.

    Args:
        url: of the database, as SQLAlchemy writes it.
        name: of the study in it.
        methods: what is searched over.
        benchmark: the data set whose presets are the defaults.
        seed: of the choice of settings.
        owner: who leads the search; a setting that this owner began and did not end is its own to
            continue, and others' are left to them.
    """

    def __init__(
        self,
        url: str,
        name: str,
        methods: Sequence[str],
        benchmark: str | None,
        seed: int,
        owner: str,
    ) -> None:
        self.optuna = import_optuna()
        self.methods, self.benchmark, self.seed, self.owner = methods, benchmark, seed, owner
        self._study = self.optuna.create_study(
            storage=_open_storage(url), study_name=name, direction="maximize", load_if_exists=True
        )
        if not self._study.get_trials(deepcopy=False):
            for method in methods:
                self._study.enqueue_trial(self._defaults(method), user_attrs={"default": True})

    def ask(self) -> Setting:
        """The setting to try next; it stays reserved for the owner until its result is reported."""
        number = len(self._study.get_trials(deepcopy=False))
        self._study.sampler = self.optuna.samplers.TPESampler(seed=_seed(self.seed, number))
        trial = self._study.ask()
        default = bool(trial.user_attrs.get("default"))
        method, values = self._suggest(trial)
        overrides = {} if default else changed_hyperparameters(method, values, self.benchmark)
        setting = Setting(trial.number, method, overrides, default)
        # The owner last: whoever continues a setting needs the rest.
        trial.set_user_attr("default", default)
        trial.set_user_attr("method", method)
        trial.set_user_attr("overrides", overrides)
        trial.set_user_attr("owner", self.owner)
        return setting

    def unfinished(self) -> list[Setting]:
        """The settings that the owner began and did not end."""
        running = self._trials(self.optuna.trial.TrialState.RUNNING)
        mine = [trial for trial in running if trial.user_attrs.get("owner") == self.owner]
        return [_setting(trial) for trial in mine]

    def tell(
        self,
        setting: Setting,
        state: State,
        score: float | None,
        scores: Mapping[int, float],
        reason: str = "",
        seconds: float = 0.0,
    ) -> None:
        """Note how a setting ended.

        Args:
            score: of a finished run.
            scores: of its evaluations, by step.
            reason: why it did not finish.
        """
        states = self.optuna.trial.TrialState
        frozen = next(trial for trial in self._trials() if trial.number == setting.number)
        if frozen.state.is_finished():
            return
        trial = self.optuna.trial.Trial(self._study, frozen._trial_id)
        for step, value in scores.items():
            if math.isfinite(value) and step not in frozen.intermediate_values:
                trial.report(value, step)
        trial.set_user_attr("reason", reason)
        trial.set_user_attr("seconds", seconds)
        if state == "finished" and score is not None:
            self._study.tell(setting.number, score)
        else:
            ended = states.PRUNED if state == "stopped" else states.FAIL
            self._study.tell(setting.number, state=ended)

    def ended(self) -> list[Tried]:
        """The settings that have ended, in the order of their numbers; without their folders."""
        states = self.optuna.trial.TrialState
        names: dict[Any, State] = {
            states.COMPLETE: "finished", states.PRUNED: "stopped", states.FAIL: "failed"
        }  # fmt: skip
        return [
            Tried(
                setting.number,
                setting.method,
                setting.overrides,
                names[trial.state],
                trial.value,
                setting.default,
                str(trial.user_attrs.get("reason", "")),
                float(trial.user_attrs.get("seconds", 0.0)),
            )
            for trial in self._trials(*names)
            for setting in [_setting(trial)]
        ]

    def medians(self) -> dict[int, float]:
        """By step, the median score of the runs that have finished; nothing of too few runs."""
        found: dict[int, list[float]] = defaultdict(list)
        for trial in self._trials(self.optuna.trial.TrialState.COMPLETE):
            for step, value in trial.intermediate_values.items():
                found[step].append(value)
        return {
            step: statistics.median(values)
            for step, values in found.items()
            if len(values) >= FEWEST_FOR_MEDIAN
        }

    def _trials(self, *states: Any) -> "list[optuna.trial.FrozenTrial]":
        trials = self._study.get_trials(deepcopy=False, states=states or None)
        # Somebody else may be about to begin one, or may have put one here by other means.
        return [trial for trial in trials if "overrides" in trial.user_attrs]

    def _suggest(self, trial: "optuna.Trial") -> tuple[str, dict[str, Any]]:
        method = self.methods[0]
        if len(self.methods) > 1:
            method = str(trial.suggest_categorical("method", list(self.methods)))
        values: dict[str, Any] = {}
        for one in search_space(method, self.benchmark):
            name, span = f"{method}.{one.name}", one.range
            if one.kind is int:
                low, high = int(span.low), int(span.high)
                values[one.name] = trial.suggest_int(name, low, high, log=span.log)
            else:
                value = trial.suggest_float(name, span.low, span.high, log=span.log)
                values[one.name] = float(f"{value:.{DIGITS}g}")
        return method, values

    def _defaults(self, method: str) -> dict[str, Any]:
        """The method's defaults by the names of the study, within their ranges."""
        found: dict[str, Any] = {"method": method} if len(self.methods) > 1 else {}
        for one in search_space(method, self.benchmark):
            within = min(max(one.default, one.range.low), one.range.high)
            found[f"{method}.{one.name}"] = one.kind(within)
        return found


def _setting(trial: "optuna.trial.FrozenTrial") -> Setting:
    attributes = trial.user_attrs
    return Setting(
        trial.number, attributes["method"], attributes["overrides"], attributes["default"]
    )


def _seed(seed: int, number: int) -> int:
    """A seed for each setting, so that a search that is continued draws nothing twice."""
    digest = hashlib.sha256(f"{seed}/{number}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def _open_storage(url: str) -> Any:
    """The database, with its tables.

    Machines that begin together may all try to make the tables. Those that come late fail, and find
    the tables there when they try again.
    """
    from sqlalchemy.exc import IntegrityError, SQLAlchemyError

    attempts = 1
    while True:
        try:
            return import_optuna().storages.RDBStorage(url.replace("{", "{{").replace("}", "}}"))
        except ImportError as error:  # the driver of the database is not installed
            raise InputError(_complaint(url, error)) from error
        except SQLAlchemyError as error:
            late = isinstance(error, IntegrityError) or "already exists" in str(error)
            if not late or attempts == ATTEMPTS:
                raise
            attempts += 1
            time.sleep(RETRY_SECONDS)


def sqlite_url(file: Path) -> str:
    """The address of a database in a file."""
    return f"sqlite:///{file.absolute()}"


def import_optuna() -> Any:
    """The package, or an error that says how to install it."""
    return require("optuna", "equida tune needs optuna", "equida[tune]")


@contextlib.contextmanager
def storage_errors(url: str) -> Iterator[None]:
    """Inside, a study may be opened and used; optuna is silent.

    Raises:
        InputError: the database cannot be opened, read or written.
    """
    optuna = import_optuna()
    from sqlalchemy.exc import SQLAlchemyError

    # Its remarks on every trial would come between the lines that the user asked for.
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    except (SQLAlchemyError, optuna.exceptions.OptunaError) as error:
        raise InputError(_complaint(url, error)) from error
    finally:
        optuna.logging.set_verbosity(before)


def _complaint(url: str, error: Exception) -> str:
    """One line about a database, without a password that its address may hold."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        shown = make_url(url).render_as_string(hide_password=True)
    except (ArgumentError, ValueError):
        shown = repr(url)
    cause = getattr(error, "orig", None) or error.__cause__ or error
    reason = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
    if "disk is full" in reason:
        return f"cannot write to {shown}: {reason}; free some space and start again"
    if isinstance(cause, ModuleNotFoundError):
        return (
            f"--storage {shown} cannot be used ({reason}); install the driver of that database, for"
            " PostgreSQL by: pip install 'psycopg[binary]'"
        )
    return (
        f"--storage {shown} cannot be used ({reason}); expected the URL of a database that can be"
        " written, such as sqlite:///FILE or postgresql://USER@HOST/NAME"
    )
