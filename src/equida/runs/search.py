"""The record of a search: the settings that were tried, the score of each, and the chosen one.

`equida tune` and `equida adapt --method auto` write it into their folder, `search.json`, and into
that of the run that was chosen. A search that looked at target labels says so wherever it is shown.
"""

import dataclasses
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from equida.errors import InputError, counted
from equida.files import read_json
from equida.methods.aiming import MARKED_ORACLE
from equida.records import conform
from equida.runs.variant import Variant
from equida.training.folder import RunFolder

LOG = logging.getLogger(__name__)

FILE = "search.json"
SCHEMA = 1

Kind = Literal["auto", "tune"]
State = Literal["finished", "stopped", "failed"]


@dataclass(frozen=True)
class Tried:
    """One setting of a search."""

    number: int
    method: str
    overrides: Mapping[str, Any]
    """The hyper-parameters that differ from the method's defaults."""
    state: State
    """A run that was stopped early, as it scored below the median of others, cannot be chosen."""
    score: float | None = None
    """The score of the weights that the run keeps; where it was stopped, of its last evaluation."""
    default: bool = False
    """Whether this is a method's default setting."""
    reason: str = ""
    """Why the run was stopped, or why it failed."""
    seconds: float = 0.0
    folder: str = ""
    """The folder of the run; "" where it is on another machine."""

    @property
    def title(self) -> str:
        """The setting as tables call it.

        >>> Tried(0, "nsm", {"r": 1.0}, "finished").title
        'NSM (r=1)'
        """
        return Variant(self.method, self.overrides, shown=self.overrides).title


@dataclass(frozen=True)
class Search:
    """Settings that were tried on one task, and by what they were compared.

    >>> first, other = (Tried(0, "nsm", {}, "finished", 0.25, default=True),
    ...                 Tried(1, "bnm", {}, "finished", 0.5))
    >>> Search("tune", "snd", False, (first, other)).chosen.method
    'bnm'
    """

    kind: Kind
    score: str
    """The validator, or the accuracy of an oracle, by the name that results use."""
    uses_target_labels: bool
    tried: tuple[Tried, ...]
    about: Mapping[str, Any] = field(default_factory=dict)
    """What was asked for: another request is another search."""

    @property
    def chosen(self) -> Tried | None:
        """The finished run with the highest score, the first of equal ones; None without any."""
        known = [one for one in self.tried if one.state == "finished" and one.score is not None]
        return max(known, key=lambda one: (one.score or 0.0, -one.number), default=None)

    @property
    def default(self) -> Tried | None:
        """The default setting of the first method, which is always tried first."""
        return next((one for one in self.tried if one.default), None)

    @property
    def count(self) -> str:
        """How many settings were tried, in words."""
        return counted(len(self.tried), "setting")

    @property
    def chosen_by(self) -> str:
        """What chose, in words, with a mark where it used target labels."""
        return (
            f"target {self.score}, the {MARKED_ORACLE}" if self.uses_target_labels else self.score
        )

    @property
    def summary(self) -> str:
        """In one line, what was chosen and how it compares with the default."""
        chosen, default = self.chosen, self.default
        if chosen is None or chosen.score is None:
            scored = "a score" if any(one.state == "finished" for one in self.tried) else "finished"
            return f"none of {self.count} has {scored}"
        said = f"chosen of {self.count} by {self.chosen_by}:"
        said += f" {chosen.title}, {chosen.score:.4f}"
        called = "the first candidate" if self.kind == "auto" else "the default"
        if default is None or default is chosen:
            return said + (f", {called}" if default else "")
        if default.score is None:
            return f"{said}; {called}, {default.title}, failed: {default.reason}"
        gain = chosen.score - default.score
        return f"{said}; {called}, {default.title}, has {default.score:.4f} ({gain:+.4f})"

    def write(self, folder: Path) -> None:
        """Write the record into a folder; folders of runs are stored relative to it."""
        stored = dataclasses.asdict(self)
        for one in stored["tried"]:
            one["folder"] = os.path.relpath(one["folder"], folder) if one["folder"] else ""
        chosen = self.chosen
        number = None if chosen is None else chosen.number
        RunFolder(folder).write_json(FILE, {"schema": SCHEMA, "chosen": number} | stored)


def read_search(folder: Path) -> Search | None:
    """The record of the search in a folder; None where there is none.

    Raises:
        InputError: the file is damaged, or a newer version of equida wrote it.
    """
    if not os.path.lexists(folder / FILE):
        return None
    stored, name = read_json(folder / FILE), str(folder / FILE)
    if not isinstance(stored, dict) or stored.get("schema") != SCHEMA:
        raise InputError(
            f"{name} is not a search of schema {SCHEMA}; move it away, or install the version that"
            " wrote it"
        )
    conform(stored, Search, name)
    try:
        tried = [Tried(**one) for one in stored["tried"]]
        fields = {field.name: stored[field.name] for field in dataclasses.fields(Search)}
    except (KeyError, TypeError) as error:
        raise InputError(f"{name} is not the record of a search ({error})") from None
    places = [str(folder / one.folder) if one.folder else "" for one in tried]
    moved = (dataclasses.replace(o, folder=p) for o, p in zip(tried, places, strict=True))
    return Search(**fields | {"tried": tuple(moved)})


def read_searches(root: Path) -> list[Search]:
    """The searches in a folder and below it, without the copies inside their own runs.

    A record that cannot be understood is left out with a warning.
    """
    folders = [file.parent for file in sorted(root.rglob(FILE))]
    known, found = set(folders), []
    for folder in folders:
        if not known.isdisjoint(folder.parents):
            continue
        try:
            found.append(read_search(folder))
        except InputError as error:
            LOG.warning("left out: %s", error)
    return [search for search in found if search is not None]


def rows(search: Search) -> Sequence[tuple[str, ...]]:
    """The settings as rows of a table, best first: number, setting, score, remark.

    >>> default = Tried(0, "nsm", {}, "finished", 0.5, default=True)
    >>> better = Tried(1, "bnm", {}, "finished", 0.75)
    >>> rows(Search("auto", "knn_balance", False, (default, better)))
    [('1', 'BNM', '0.7500', 'chosen'), ('0', 'NSM', '0.5000', 'default')]
    """
    order = {"finished": 0, "stopped": 1, "failed": 2}

    def place(one: Tried) -> tuple[Any, ...]:
        return order[one.state], -(one.score or 0.0), one.number

    shown = []
    for one in sorted(search.tried, key=place):
        marks = ["chosen"] if one is search.chosen else []
        marks += ["default"] if one.default else []
        marks += [one.reason] if one.reason else []
        score = "" if one.score is None else f"{one.score:.4f}"
        shown.append((str(one.number), one.title, score, ", ".join(marks)))
    return shown
