"""Doing a finished run again from its record, and comparing the two."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equida.data.spec import DataSpec, data_sha256
from equida.errors import InputError
from equida.files import refuse_to_replace, temporary_folder
from equida.plugins import Plugin
from equida.progress import Mode
from equida.records import conform
from equida.training.config import RunConfig
from equida.training.folder import RunFolder
from equida.training.launch import launch
from equida.training.plan import WRITTEN
from equida.training.predictor import LOG, finished_run
from equida.training.trust import named_code, settle_trust, with_plugins


@dataclass(frozen=True)
class Repetition:
    """How a run that was done again compares with the first; `equida rerun` prints it.

    >>> print(Repetition(2, False, ("torch 2.1 became 2.2",), {"equity": (0.5, 0.75)}))
    different weights (torch 2.1 became 2.2); figures then and now:
      equity: 0.5  0.75
    """

    tensors: int
    """How many weight tensors the first run has."""
    same: bool
    """Whether all of them are equal bit for bit."""
    causes: tuple[str, ...] = ()
    """What has changed since: versions, processes, data."""
    figures: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    """The figures of the last step, then and now, where the weights differ."""
    code: tuple[str, ...] = ()
    """What has changed since of the code that is not equida's own."""

    def __str__(self) -> str:
        if self.same:
            said = [f"the same: {self.tensors} weight tensors are equal bit for bit"]
        else:
            causes = ", ".join(self.causes) or "with the same versions and data"
            figures = [f"  {name}: {a:.6g}  {b:.6g}" for name, (a, b) in self.figures.items()]
            said = [f"different weights ({causes}); figures then and now:", *figures]
        return "\n".join([*self.code, *said])


@dataclass(frozen=True)
class Started:
    """How a run was started, as its config.json has it."""

    devices: int = 1
    num_nodes: int = 1
    accelerator: str = "auto"
    threads: int = 0


def repeat_run(
    run: Path,
    out: Path | None = None,
    mode: Mode = "silent",
    *,
    trust: bool = False,
    say: Callable[[str], None] = LOG.info,
) -> Repetition:
    """Do a finished run again, from its record alone.

    Args:
        run: folder of the finished run.
        out: where the second run is kept; None removes it once it has been compared.
        mode: how progress is shown.
        trust: whether code may be run that the run's record names.
        say: told of that code.
    """
    first = finished_run(run)
    if out is None:
        with temporary_folder() as folder:
            return repeat_run(run, folder, mode, trust=trust, say=say)
    if (out / "config.json").exists():
        raise InputError(f"{out} holds a run already; choose another folder")
    refuse_to_replace([out / name for name in WRITTEN], lambda: False)
    config, recorded = first.read_config(), first.read_json("config.json")
    assert config is not None, "a finished run has its config"
    if config.task is None:
        raise InputError(f"{first.path} was trained on data in memory; it cannot be done again")
    code = named_code(config, images=False)
    settle_trust(first.path / "config.json", code, trust, say)
    second = RunFolder(out)
    config = dataclasses.replace(
        config, weights_sha256="", task=_beside_the_run(config.task, first.path)
    )
    before, config = config.plugins, with_plugins(config)
    stored = recorded.get("processes") or {}
    conform(stored, Started, f"{first.path}: config.json: processes")
    known = [field.name for field in dataclasses.fields(Started)]
    started = Started(**{name: stored[name] for name in known if name in stored})
    launch(config, second.path, **dataclasses.asdict(started), mode=mode)
    return dataclasses.replace(
        _compared(first, second, config), code=tuple(_changed_code(before, config.plugins))
    )


def _changed_code(then: Iterable[Plugin], now: Iterable[Plugin]) -> list[str]:
    """What is not as it was of the code that is not equida's own."""
    known = {(each.kind, each.name): each for each in then}
    pairs = [(known.get((each.kind, each.name)), each) for each in now]
    return [
        f"the code of {each.kind} {each.name!r} has changed ({was} became {each})"
        for was, each in pairs
        if was is not None and str(was) != str(each)
    ]


def _compared(first: RunFolder, second: RunFolder, config: RunConfig) -> Repetition:
    old, new = (folder.load_tensors("model.safetensors") for folder in (first, second))
    if old.keys() == new.keys() and all(old[name].equal(new[name]) for name in old):
        return Repetition(len(old), same=True)
    results = [folder.read_result() for folder in (first, second)]
    was, now = (result["last"] for result in results if result is not None)
    figures = {name: (was[name], now.get(name, float("nan"))) for name in was}
    then, today = (folder.read_json("config.json") for folder in (first, second))
    return Repetition(len(old), False, tuple(_causes(then, today, config)), figures)


def _causes(then: Mapping[str, Any], now: Mapping[str, Any], config: RunConfig) -> list[str]:
    """What is not as it was at the first run: versions, processes, data."""
    changed = [
        f"{name} {value} became {now[part].get(name)}"
        for part in ("versions", "processes")
        for name, value in (then.get(part) or {}).items()
        if value != now[part].get(name)
    ]
    if unknown := [name for name in now["versions"] if name not in (then.get("versions") or {})]:
        changed.append(f"the first run has not recorded its version of {', '.join(unknown)}")
    # The version of equida need not tell: it was not raised with each change of what is stored.
    if (schema := then.get("schema", 0)) != now["schema"]:
        changed.append(f"an older equida made the first run (schema {schema}, not {now['schema']})")
    spec = config.images or config.task
    if config.data_sha256 and spec and data_sha256(spec) != config.data_sha256:
        changed.append("the data have changed")
    return changed


def _beside_the_run(spec: DataSpec, folder: Path) -> DataSpec:
    """The task with the features that `adapt --features` wrote into the run's folder, also where
    the run has been copied or moved since."""
    paths = {name: getattr(spec, name) or "" for name in ("source", "target", "data")}
    beside = {name: folder.absolute() / Path(path).name for name, path in paths.items() if path}
    found: dict[str, Any] = {
        name: str(file)
        for name, file in beside.items()
        if file.is_file() and file.name.startswith("features-") and not Path(paths[name]).exists()
    }
    return dataclasses.replace(spec, **found)
