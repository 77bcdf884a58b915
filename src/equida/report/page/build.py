"""The page: one file that holds everything it shows."""

import importlib.resources
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from equida import __version__
from equida.bench.store import Run, read_runs
from equida.errors import InputError
from equida.methods import METHODS
from equida.methods import describe as describe_method
from equida.report.page.colours import styles
from equida.report.page.command import adapt_command, rerun_command
from equida.report.page.comparison import comparison, headline, selection_tables
from equida.report.page.detail import describe
from equida.report.page.grid import SELECTIONS, Entry, Grid, System, arrange
from equida.report.page.maps import POINTS, chosen, import_tsne
from equida.report.page.pictures import Pictures
from equida.training.config import RunConfig

CLASSES = 70
"""Of more classes than this, the panels by class show those that differ the most."""
FEW = 24
"""Of more finished runs than this, the list of them starts folded up by task."""
VALIDATORS = {
    "source accuracy": "the step with the best accuracy on source samples.",
    "entropy": "the step with the least mean entropy of target predictions.",
    "information maximization": "the step whose target predictions are certain one by one and "
    "diverse on average.",
    "bnm": "the step with the largest nuclear norm of target predictions.",
    "snd": "the step with the largest soft neighbourhood density of target predictions.",
}


def write_page(
    root: Path,
    out: Path,
    *,
    title: str = "",
    images: Path | None = None,
    maps: int = 12,
    advance: Callable[[str, int, int], None] = lambda what, done, of: None,
) -> Grid:
    """Write the page of all runs below `root` and return what is on it.

    Args:
        root: a folder of runs.
        out: the file to write.
        title: head of the page; the name of the folder by default.
        images: folder of the images that features were computed from.
        maps: how many runs get a t-SNE map.
        advance: told which run is being read, its number and how many there are.
    """
    for name in ("jinja2", "plotly"):
        _import(name)
    if maps:
        import_tsne()
    grid = arrange(read_runs(root))
    if not grid.finished and not grid.open:
        raise InputError(f"{root} holds no runs; make some with equida bench or equida adapt")
    text = make_page(grid, str(root), title or root.resolve().name, Pictures(images), maps, advance)
    # File names may hold bytes that are no text; the page shows them as question marks.
    content = text.encode("utf-8", "replace")
    part = out.with_name(out.name + ".part")
    try:
        part.write_bytes(content)
        part.replace(out)
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror}; choose another --out") from None
    return grid


def make_page(
    grid: Grid,
    root: str,
    title: str,
    pictures: Pictures,
    maps: int,
    advance: Callable[[str, int, int], None],
) -> str:
    """The page as text."""
    mapped = chosen(grid.finished, maps)
    numbers = {entry.number for entry in mapped}
    runs = []
    for done, entry in enumerate(grid.finished):
        advance(str(entry.run.path), done, len(grid.finished))
        told = describe(entry, baseline(grid, entry), pictures, mapped=entry.number in numbers)
        place = {"system": grid.systems.index(entry.system), "task": grid.tasks.index(entry.task)}
        runs.append(place | told)
    labelled = any("confusion" in entry.result for entry in grid.finished)
    template = _environment().get_template("page.html.jinja")
    return str(
        template.render(
            title=title,
            root=root,
            version=__version__,
            facts=facts(grid),
            finished=len(grid.finished),
            few=FEW,
            headline=headline(grid),
            labelled=labelled,
            systems=grid.systems,
            selections={name: SELECTIONS[name] for name in grid.selections},
            oracle="oracle" in grid.selections,
            tables=[comparison(grid, name) for name in grid.selections],
            selection_tables=selection_tables(grid),
            open=[_open(entry) for entry in grid.open],
            configurations=_configurations(grid),
            validators=VALIDATORS,
            limits=_limits(grid, mapped, pictures),
            css=_asset("page.css"),
            scripts=[_asset(name) for name in ("shell.js", "overview.js", "run.js")],
            plotly=_import("plotly.offline").get_plotlyjs(),
            data=embedded(_data(grid, runs, pictures, mapped)),
        )
    )


def embedded(value: Any) -> str:
    r"""JSON that is safe inside a script element, whatever its texts hold.

    >>> embedded(["</script>", "\u2028"])
    '["\\u003c/script\\u003e","\\u2028"]'
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    # Outside of strings JSON has none of these, and inside they may be written as numbers.
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def baseline(grid: Grid, entry: Entry) -> Entry | None:
    """The source-only run to compare with: same task, and the same seed where there is one."""
    if entry.run.config.method == "source_only" or "confusion" not in entry.result:
        return None
    found = [
        other
        for other in grid.finished
        if other.run.config.method == "source_only"
        and other.task == entry.task
        and "confusion" in other.result
    ]
    data = entry.run.config.task and entry.run.config.task.data

    def distance(other: Entry) -> tuple[bool, bool, int]:
        config = other.run.config
        return (config.task and config.task.data) != data, other.seed != entry.seed, other.number

    return min(found, key=distance, default=None)


def facts(grid: Grid) -> str:
    """How much is on the page, in words."""
    seeds = {entry.seed for entry in grid.finished}
    counted = [
        (len(grid.finished), "finished run"),
        (len(grid.systems), "system"),
        (len(grid.tasks), "task"),
        (len(seeds), "seed"),
    ]
    words = [f"{count} {name}{'' if count == 1 else 's'}" for count, name in counted]
    if grid.open:
        words.append(f"{len(grid.open)} unfinished or failed")
    return " · ".join(words)


def _data(
    grid: Grid, runs: Sequence[Mapping[str, Any]], pictures: Pictures, mapped: Sequence[Entry]
) -> dict[str, Any]:
    looks = styles(grid.systems)
    systems = [
        {"label": system.label, "method": system.method, "idea": _idea(system), **look}
        for system, look in zip(grid.systems, looks, strict=True)
    ]
    tasks = [{"benchmark": task.benchmark, "name": task.name} for task in grid.tasks]
    best = [entry for entry in mapped if entry.system.method == "nsm"] or list(mapped)
    return {
        "systems": systems,
        "tasks": tasks,
        "benchmarks": len({task.benchmark for task in grid.tasks}),
        "runs": list(runs),
        "first": (best or grid.finished or grid.open)[0].number,
        "pictures": pictures.made,
        "most_classes": CLASSES,
        "map_note": f"This run has no map: {len(mapped)} of {len(grid.finished)} runs were given "
        "one, the first seeds first; equida report --maps N makes more.",
    }


def _idea(system: System) -> str:
    known = [part for part in system.method.split("+") if part in METHODS]
    return " ".join(describe_method(part).idea for part in known)


def _open(entry: Entry) -> dict[str, Any]:
    return {
        "path": str(entry.run.path),
        "task": entry.task.name,
        "system": entry.system.label,
        "seed": entry.seed,
        "reason": entry.run.failure or "unfinished: start it again and it goes on",
    }


def _configurations(grid: Grid) -> list[dict[str, Any]]:
    groups = []
    for task in grid.tasks:
        runs = [entry for entry in grid.finished if entry.task == task]
        groups.append(
            {
                "title": f"{task.benchmark}, {task.name}",
                "runs": [
                    {
                        "system": grid.systems.index(entry.system),
                        "label": entry.system.label,
                        "seed": entry.seed,
                        "path": str(entry.run.path),
                        "rerun": rerun_command(entry.run.path),
                        "adapt": adapt_command(entry.run.config),
                        "config": _config_text(entry.run),
                    }
                    for entry in runs
                ],
            }
        )
    return groups


def _config_text(run: Run) -> str:
    try:
        return (run.path / "config.json").read_text(errors="replace").strip()
    except OSError:
        return json.dumps(RunConfig.to_json(run.config), indent=1)


def _limits(grid: Grid, mapped: Sequence[Entry], pictures: Pictures) -> list[str]:
    lines = []
    if len(mapped) < len(grid.finished):
        lines.append(
            f"{len(mapped)} of {len(grid.finished)} runs have a map, each of at most {POINTS} "
            "evenly chosen target samples; equida report --maps N makes more."
        )
    elif mapped:
        lines.append(f"A map shows at most {POINTS} evenly chosen target samples.")
    if pictures.refused:
        lines.append(
            f"The page holds {len(pictures.made)} pictures, its limit; where one is missing, "
            "the name of the sample is shown alone."
        )
    if any(len(entry.result["classes"]) > CLASSES for entry in grid.finished):
        lines.append(f"Panels by class show the {CLASSES} classes that differ the most.")
    return lines


def _asset(name: str) -> str:
    return (importlib.resources.files(__package__) / "template" / name).read_text("utf-8")


def _environment() -> Any:
    jinja2 = _import("jinja2")
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        package = name.split(".")[0]
        raise InputError(f"the page needs {package}: pip install 'equida[report]'") from None
