"""The schema of what a run stores, and the one step that brings older files up to date."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal

from equida.data.classes import check_class_names
from equida.errors import InputError, printable
from equida.records import conform

SCHEMA = 1
"""The number that config.json and result.json carry; files without one are of schema 0."""

Kind = Literal["config.json", "result.json"]


def migrate(stored: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
    """The content of a stored file in the present schema, whatever version of equida wrote it.

    Every reader of config.json, result.json and of the config inside a checkpoint goes through
    this function; the rest of the code knows the present schema only.

    Raises:
        InputError: a newer version of equida wrote the file, or it is not such a file at all.

    >>> migrate({"initial": "runs/first", "backbone": "lenet"}, "config.json")["from_run"]
    'runs/first'
    """
    if not isinstance(stored, Mapping):
        raise InputError(f"{kind} holds {type(stored).__name__}; expected the record of a run")
    schema = stored.get("schema", 0)
    if type(schema) is not int or not 0 <= schema <= SCHEMA:
        raise InputError(
            f"{kind} has schema {schema!r}, but this version of equida reads schemas up to"
            f" {SCHEMA}; install a newer version"
        )
    values = dict(stored)
    for number in range(schema, SCHEMA):
        values = STEPS[number][kind](values)
    return values | {"schema": SCHEMA}


Figures = Mapping[str, float | None]


@dataclass(frozen=True)
class SharesRecord:
    """Class shares of the target."""

    predicted: list[float]
    estimated: list[float] | None = None
    """The mean of the two estimates, whether or not they agree."""
    aim: list[float] | None = None
    agreement: float = 0.0
    imbalance: float = 0.0


@dataclass(frozen=True)
class HarmRecord:
    """Whether adaptation may have hurt."""

    levelled: bool
    collapsed: bool
    source_only: Figures
    adapted: Figures
    compared_with: str = "source only"


@dataclass(frozen=True)
class CalibrationRecord:
    """What confidences promise."""

    temperature: float
    expected_accuracy: float


@dataclass(frozen=True)
class UncalibratedRecord:
    """Why confidences are not calibrated; records of earlier versions do not say."""

    reason: str
    seen: int
    needed: int


@dataclass(frozen=True)
class ResultRecord:
    """What readers of result.json count on; other fields may stand beside these."""

    task: str
    classes: list[str]
    metric: str
    kept: str
    last: Figures
    picks: Mapping[str, Figures]
    seconds: float
    confusion: list[list[int]] | None = None
    columns: list[str] | None = None
    benchmark: str | None = None
    shares: SharesRecord | None = None
    harm: HarmRecord | None = None
    calibration: CalibrationRecord | None = None
    uncalibrated: UncalibratedRecord | None = None


def check_result(values: Mapping[str, Any]) -> None:
    """Raise InputError unless the content of a result.json has what readers count on."""
    _check_complete(values, ResultRecord, "result.json")
    conform(values, ResultRecord, "result.json")
    parts = {
        "harm": HarmRecord, "calibration": CalibrationRecord, "uncalibrated": UncalibratedRecord,
    }  # fmt: skip
    for name, part in parts.items():
        if values.get(name) is not None:
            _check_complete(values[name], part, f"result.json: {name}")
    _check_target(values)
    for figures in (values["last"], *values["picks"].values()):
        for name in ("step", "equity", "discriminability"):
            conform(figures.get(name), float, f"result.json: {name}")
    check_class_names(values["classes"], "result.json")
    for name in ("task", "metric", "kept"):
        if printable(values[name]) != values[name]:
            raise InputError(f"result.json: {name} is {values[name]!r}, which is not a name")
    rows, classes = values.get("confusion"), len(values["classes"])
    if rows is not None and [len(row) for row in rows] != [classes] * classes:
        raise InputError(f"result.json: confusion does not have {classes} rows and columns")


def _check_complete(values: Mapping[str, Any], record: type, name: str) -> None:
    needed = [field.name for field in fields(record) if field.default is MISSING]
    if missing := [each for each in needed if each not in values]:
        raise InputError(f"{name} has no {missing[0]!r}; it is not the record of a run")


def _check_target(values: Mapping[str, Any]) -> None:
    """Refuse shares that are not one for each class, and a harm check without equity."""
    shares, harm = values.get("shares"), values.get("harm")
    if shares is not None:
        _check_complete(shares, SharesRecord, "result.json: shares")
        if ("imbalance" in shares) != ("agreement" in shares):
            raise InputError("result.json: shares has one of 'imbalance' and 'agreement' only")
        for name in ("predicted", "estimated", "aim"):
            given, classes = shares.get(name), len(values["classes"])
            if given is not None and len(given) != classes:
                raise InputError(f"result.json: shares.{name} has {len(given)} of {classes} shares")
    if harm is not None:
        for name in ("source_only", "adapted"):
            conform(harm[name].get("equity"), float, f"result.json: harm.{name}.equity")


def _config_from_0(values: dict[str, Any]) -> dict[str, Any]:
    """Schema 0 had other names for two fields and did not store the recipe's name."""
    renamed = {"initial": "from_run", "extractor": "feature_origin"}
    values = {renamed.get(name, name): value for name, value in values.items()}
    for part in ("recipe", "task"):
        conform(values.get(part), Mapping[str, Any] | None, f"config.json: {part}")
    if values.get("recipe") is not None:
        name = _recipe_name(values["recipe"], str(values.get("backbone", "none")))
        values.setdefault("recipe_name", name)
        values.setdefault("recipe_changes", _recipe_changes(values, name))
    return values


def _result_from_0(values: dict[str, Any]) -> dict[str, Any]:
    """Schema 0 left the recipe's name and the digests to config.json."""
    return {"recipe_name": "", "data_sha256": "", "weights_sha256": ""} | values


# The recipes of schema 0. They are frozen here, as the registered recipes may change.
_FEATURES: dict[str, Any] = {
    "iterations": 1000, "batch_size": 36, "learning_rate": 1e-3, "head_multiplier": 10.0,
    "momentum": 0.9, "weight_decay": 1e-3, "gamma": 1e-3, "power": 0.75, "label_smoothing": 0.0,
    "warm_up": 0.1, "bottleneck": 256, "bottleneck_norm": True, "bottleneck_relu": True,
    "dropout": 0.5, "init": "torch", "freeze": "", "holdout": 0.0, "clip": 0.0, "accumulate": 1,
    "precision": "32-true", "channels_last": False, "compile": False, "evaluate_every": 200,
    "log_every": 50, "keep": "last", "workers": 0, "eval_batch_size": 256, "ten_crop": False,
}  # fmt: skip
RECIPES_OF_SCHEMA_0: dict[str, dict[str, Any]] = {
    "features": _FEATURES,
    "paper": _FEATURES
    | {"iterations": 6004, "warm_up": 0.0, "bottleneck": 0, "dropout": 0.0, "init": "kaiming"}
    | {"evaluate_every": 500, "workers": 4, "channels_last": True, "eval_batch_size": 64},
    "digits": _FEATURES
    | {"iterations": 800, "learning_rate": 1e-2, "head_multiplier": 1.0, "weight_decay": 5e-4}
    | {"bottleneck": 128, "dropout": 0.0, "channels_last": True, "evaluate_every": 100},
}
TELLING = ("init", "warm_up", "dropout", "head_multiplier")
"""The fields by which the recipes of schema 0 are told apart."""
RATES_OF_SCHEMA_0 = {
    ("office31", "A", "D"): 3e-4,
    ("office31", "D", "W"): 3e-4,
    ("office31", "W", "D"): 3e-4,
    ("visda2017", "Synthetic", "Real"): 3e-4,
}
"""The learning rates that the recipe "paper" had on some tasks."""


def _recipe_name(recipe: Mapping[str, Any], backbone: str) -> str:
    """The recipe that the run most likely had: the backbone's, unless another one fits better."""
    usual = {"none": "features", "lenet": "digits"}.get(backbone, "paper")

    def fit(name: str) -> tuple[int, bool]:
        values = RECIPES_OF_SCHEMA_0[name]
        return sum(recipe.get(field) == values[field] for field in TELLING), name == usual

    return max(RECIPES_OF_SCHEMA_0, key=fit)


def _recipe_changes(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The fields of the recipe that the user had most likely set."""
    known = dict(RECIPES_OF_SCHEMA_0[name])
    task = config.get("task") or {}
    place = tuple(task.get(key) for key in ("benchmark", "source", "target"))
    if name == "paper" and place in RATES_OF_SCHEMA_0:
        known["learning_rate"] = RATES_OF_SCHEMA_0[place]
    recipe = config["recipe"].items()
    return {field: value for field, value in recipe if value != known.get(field)}


STEPS: dict[int, dict[Kind, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    0: {"config.json": _config_from_0, "result.json": _result_from_0},
}
"""By schema number, how each file of that schema becomes one of the next."""
