"""`dataset.toml`: what the owner of a data set says of it. It is data and names no code."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equida.data.own import OwnBenchmark
from equida.errors import InputError, suggestion
from equida.files import why_not_a_file, write_atomic

NAME = "dataset.toml"
METRICS = ("accuracy", "mean_class_accuracy")
TEXTS = ("name", "title", "metric", "root")
LISTS = ("classes", "tasks")
DOMAIN_TEXTS = ("title", "path", "train", "test")


@dataclass(frozen=True)
class DomainEntry:
    """The table of one domain; "" stands for a key that is not there."""

    key: str
    title: str = ""
    path: str = ""
    """Folder, image list or feature file (FILE:DOMAIN), from the root on; by default its key."""
    train: str = ""
    """Image list of the samples to learn from, instead of all."""
    test: str = ""
    """Image list of the samples that the domain is judged by as a target, instead of all."""


@dataclass(frozen=True)
class DatasetFile:
    """The content of a dataset.toml, checked."""

    file: Path
    name: str = ""
    title: str = ""
    metric: str = ""
    root: str = ""
    """The folder of the data, from the file's own on; by default that folder itself."""
    classes: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    domains: tuple[DomainEntry, ...] = field(default=())

    @property
    def folder(self) -> Path:
        """The folder that the paths of the domains start from."""
        return self.file.parent / Path(self.root).expanduser()


def read_dataset_file(file: Path) -> DatasetFile:
    """The content of a dataset.toml.

    Raises:
        InputError: it is not TOML, has an unknown key, or a value of a wrong type.
    """
    if problem := why_not_a_file(file):
        raise InputError(f"{file} cannot be read as TOML: {problem}; mend it")
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{file} cannot be read as TOML: {error}; mend it") from None
    _refuse_unknown(values, (*TEXTS, *LISTS, "domains"), str(file))
    texts = {name: _text(values[name], name, file) for name in TEXTS if name in values}
    lists = {name: _texts(values[name], name, file) for name in LISTS if name in values}
    if texts.get("metric", METRICS[0]) not in METRICS:
        raise InputError(
            f"{file}: metric is {texts['metric']!r}; it must be one of {', '.join(METRICS)}"
        )
    tables = values.get("domains", {})
    if not isinstance(tables, dict):
        raise InputError(f"{file}: domains is {tables!r}; it must be tables, such as [domains.art]")
    domains = tuple(_domain(key, table, file) for key, table in tables.items())
    return DatasetFile(file, **texts, **lists, domains=domains)  # type: ignore[arg-type]


def refuse_to_describe(file: Path) -> None:
    """Raise InputError where there is such a file already."""
    if file.exists():
        raise InputError(f"{file} exists; it is not replaced: edit it, or move it away first")


def write_dataset_file(own: OwnBenchmark, file: Path) -> None:
    """Write a first dataset.toml, to be edited by hand; a file that exists is never replaced."""
    refuse_to_describe(file)
    lines = [
        f"title = {_quoted(own.title)}",
        f"metric = {_quoted(own.metric)}  # or {_quoted(METRICS[own.metric == METRICS[0]])}",
        _listing("tasks", own.tasks),
        _listing("classes", own.classes),
    ]
    for domain in own.domains:
        lines += [
            "",
            f"[domains.{_quoted(domain.key)}]",
            f"title = {_quoted(domain.title)}",
            f"path = {_quoted(domain.place)}",
        ]
        lines += [f"test = {_quoted(domain.test)}"] if domain.test else []
    write_atomic(file, "\n".join(lines) + "\n")


def _domain(key: str, table: Any, file: Path) -> DomainEntry:
    if not isinstance(table, dict):
        raise InputError(f"{file}: domains.{key} is {table!r}; it must be a table [domains.{key}]")
    _refuse_unknown(table, DOMAIN_TEXTS, f"{file}: [domains.{key}]")
    texts = {name: _text(value, f"domains.{key}.{name}", file) for name, value in table.items()}
    if texts.get("path") and texts.get("train"):
        raise InputError(f"{file}: [domains.{key}] has both path and train; keep one of them")
    return DomainEntry(key, **texts)


def _refuse_unknown(table: Mapping[str, Any], known: Iterable[str], place: str) -> None:
    for name in table:
        if name not in known:
            raise InputError(f"{place} has no key {name!r}{suggestion(name, known)}")


def _text(value: Any, name: str, file: Path) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(f"{file}: {name} is {value!r}; it must be a text")
    return value


def _texts(value: Any, name: str, file: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise InputError(f"{file}: {name} is {value!r}; it must be a list of texts")
    if len(set(value)) < len(value):
        twice = next(one for one in value if value.count(one) > 1)
        raise InputError(f"{file}: {name} lists {twice!r} twice; remove one")
    return tuple(value)


def _quoted(text: str) -> str:
    """A TOML string; JSON's escapes are TOML's."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _listing(name: str, values: Iterable[str]) -> str:
    return "\n".join([f"{name} = [", *(f"    {_quoted(value)}," for value in values), "]"])
