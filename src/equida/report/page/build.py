"""The page: one file that holds everything it shows."""

import dataclasses
import importlib.resources
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from equida import __version__
from equida.errors import InputError, counted, require
from equida.evaluation import figures
from equida.evaluation.validators import VALIDATORS
from equida.fields import checked_value
from equida.files import refuse_to_replace, write_atomic
from equida.methods import METHODS, describe_method, method_parts
from equida.progress import Bar, display_mode, say
from equida.report.page.colours import styles
from equida.report.page.content import PageContent, ShownRun, arrange
from equida.report.page.detail import describe_run, shown_figures
from equida.report.page.headline import headlines
from equida.report.page.maps import POINTS, choose_mapped
from equida.report.page.pictures import Pictures
from equida.report.page.tables import figure_name, page_tables, selection_tables
from equida.report.tsne import import_tsne
from equida.runs.commands import adapt_command, rerun_command
from equida.runs.entry import Entry, selection_titles
from equida.runs.read import Run, read_runs
from equida.runs.search import Search, read_searches, rows
from equida.runs.significance import FEWEST_PAIRS, LEVEL
from equida.training.config import RunConfig
from equida.training.trust import named_code, settle_trust

CLASSES = 70
"""Where there are more classes, the panels by class show those that differ the most."""
FEW = 24
"""Where there are more finished runs, the list of them starts folded up by task."""

Advance = Callable[[int, int], None]


def write_page(
    runs: str | Path | Sequence[Run],
    out: str | Path,
    *,
    title: str = "",
    images: str | Path | None = None,
    maps: int = 12,
    trust: bool = False,
    progress: bool | None = None,
) -> PageContent:
    """Write the page of some runs and return what is on it.

    Args:
        runs: a folder of runs, the folder of one run, or runs that were read.
        out: the file to write.
        title: head of the page; the name of the folder by default.
        images: folder of the images that features were computed from.
        maps: how many runs get a t-SNE map.
        trust: import the methods that the records of runs name by package.module:Class, after
            saying so; the page then has their descriptions.
        progress: None shows it in a terminal or notebook; True and False force it.
    """
    file = checked_value(out, Path, "out")
    pictures = checked_value(images, Path | None, "images")
    if checked_value(maps, int, "maps") < 0:
        raise InputError(f"maps is {maps}; it must be at least 0")
    if pictures is not None and not pictures.is_dir():
        raise InputError(f"{pictures} is not a folder; expected one of images")
    if file.is_dir():
        raise InputError(f"{file} is a folder; expected a file such as report.html")
    refuse_to_replace([file], lambda: _is_page(file))
    for name in ("jinja2", "plotly"):
        _import(name)
    if maps:
        import_tsne()
    folder = Path(runs) if isinstance(runs, str | Path) else None
    with Bar(display_mode(progress), "reading runs") as bar:

        def advance(number: int, total: int) -> None:
            if bar.total is None:
                bar.start("drawing runs", total)
            bar.update(number)

        found = read_runs(Path(runs)) if isinstance(runs, str | Path) else list(runs)
        root = folder or _common_folder(found)
        if not found:
            raise InputError(f"{root} holds no runs; make some with equida bench or equida adapt")
        if trust:
            _trust_methods(found)
        content = arrange(found)
        name = title or root.resolve().name
        searches = read_searches(folder) if folder else []
        text = make_page(content, str(root), name, Pictures(pictures), maps, advance, searches)
    # File names may hold bytes that are no text; the page shows them as question marks.
    write_atomic(file, text.encode("utf-8", "replace"))
    return content


def _trust_methods(runs: Sequence[Run]) -> None:
    """Permit the methods that the records of these runs name."""
    for found in runs:
        code = {name: kind for name, kind in named_code(found.config).items() if kind == "method"}
        settle_trust(found.path / "config.json", code, True, say)


def _is_page(file: Path) -> bool:
    with file.open("rb") as stream:
        return b'<meta name="generator" content="equida">' in stream.read(1000)


def make_page(
    content: PageContent,
    root: str,
    title: str,
    pictures: Pictures,
    maps: int,
    advance: Advance,
    searches: Sequence[Search] = (),
) -> str:
    """The page as text."""
    mapped = choose_mapped(content.finished, maps)
    numbers = {shown.number for shown in mapped}
    runs, bases = [], baselines(content)
    for shown in content.finished:
        advance(shown.number, len(content.finished))
        base = bases.get(shown.number)
        runs.append(describe_run(shown, base, pictures, mapped=shown.number in numbers))
    selections, titles = content.selections, selection_titles()
    template = _environment().get_template("page.html.jinja")
    return str(
        template.render(
            title=title,
            root=root,
            version=__version__,
            facts=facts(content),
            finished=len(content.finished),
            few=FEW,
            headlines=headlines(content),
            searches=[_search(search) for search in searches],
            labelled=any("confusion" in shown.result for shown in content.finished),
            measures=_measures(),
            selections={name: titles[name] for name in selections},
            results=[_results(content, name) for name in selections],
            selection_tables=selection_tables(content),
            unfinished=[_unfinished(entry) for entry in content.unfinished],
            configurations=_configurations(content),
            words=_words(content),
            limits=_limits(content, mapped, pictures),
            css=_asset("page.css"),
            scripts=[_asset(name) for name in ("shell.js", "overview.js", "run.js")],
            plotly=_import("plotly.offline").get_plotlyjs(),
            data=embedded(_data(content, runs, pictures, mapped)),
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


def baselines(content: PageContent) -> dict[int, ShownRun]:
    """By the number of a run, the source-only run of the same task to compare it with.

    It has the same network and seed, or else the same network, or else the same seed, where there
    is such a run; of several the first.
    """
    labelled = [shown for shown in content.finished if "confusion" in shown.result]
    candidates: dict[tuple[Any, ...], ShownRun] = {}
    for shown in labelled:
        if shown.method != "source_only":
            continue
        for key in _places(shown):
            candidates.setdefault(key, shown)
    found = {}
    for shown in labelled:
        bases = [candidates[key] for key in _places(shown) if key in candidates]
        if bases and shown.method != "source_only":
            found[shown.number] = bases[0]
    return found


def _places(shown: ShownRun) -> list[tuple[Any, ...]]:
    """What a run and its baseline may share, the most first."""
    network = tuple(sorted(shown.entry.variant.network.items()))
    task, seed = shown.task, shown.seed
    return [(task, network, seed), (task, network, None), (task, None, seed), (task, None, None)]


def facts(content: PageContent) -> str:
    """How much is on the page, in words."""
    figures = [
        (len(content.finished), "finished run"),
        (len(content.systems), "system"),
        (len(content.tasks), "task"),
        (len({shown.seed for shown in content.finished}), "seed"),
    ]
    words = [counted(count, name) for count, name in figures]
    if content.unfinished:
        words.append(f"{len(content.unfinished)} unfinished or failed")
    return " · ".join(words)


def _search(search: Search) -> dict[str, Any]:
    summary = search.summary
    return {
        "summary": f"{summary[0].upper()}{summary[1:]}.",
        "chosen_by": search.chosen_by,
        "oracle": search.uses_target_labels,
        "stopped": any(one.state == "stopped" for one in search.tried),
        "rows": rows(search),
    }


def _metrics(content: PageContent) -> list[str]:
    """The accuracies that the tasks of the page are judged by."""
    return list(dict.fromkeys(str(shown.result["metric"]) for shown in content.finished))


def _measures() -> list[dict[str, Any]]:
    """The figures that stand beside accuracies, in tables and in plots."""
    return [
        {"key": figure.name, "title": figure.title, "name": figure_name(figure)}
        | {"meaning": figure.meaning, "percent": figure.percent}
        for figure in figures.columns()
    ]


def _results(content: PageContent, select: str) -> dict[str, Any]:
    """The tables of one selection, and each of their notes once."""
    tables = page_tables(content, select)
    notes = dict.fromkeys(note for table in tables for note in table.notes)
    return {"select": select, "tables": tables, "notes": list(notes)}


def _words(content: PageContent) -> dict[str, str]:
    """The terms that the page uses, with their meanings."""
    shown = {figure_name(f): f"{f.meaning}." for f in shown_figures(_metrics(content))}
    ahead = (
        "One system is called ahead of another where the accuracies of their runs with the same "
        f"task and seed differ in its favour: the {100 * (1 - LEVEL):.0f} % interval of the mean "
        f"difference is above 0, and Wilcoxon's signed-rank test gives p < {LEVEL:g} after p is "
        "multiplied by the number of pairs of systems. Fewer than "
        f"{FEWEST_PAIRS} such pairs decide nothing. It is a statement about these tasks: seeds "
        "repeat a task, and do not say what other tasks would give."
    )
    validators = [VALIDATORS[name] for name in VALIDATORS]
    return {
        **shown,
        "ahead": ahead,
        "last step": "what the run ended with; nothing was selected.",
        **{f"picked by {one.title}": f"{one.meaning}." for one in validators},
        "oracle": "the step with the best target accuracy; finding it needs target labels.",
    }


def _data(
    content: PageContent,
    runs: Sequence[Mapping[str, Any]],
    pictures: Pictures,
    mapped: Sequence[ShownRun],
) -> dict[str, Any]:
    looks = styles([system.method for system in content.systems])
    systems = [
        {"label": system.label, "method": system.method, "idea": _idea(system.method), **look}
        for system, look in zip(content.systems, looks, strict=True)
    ]
    several = len({task.group for task in content.tasks}) > 1
    titles = [
        content.task_title(number) if several else task.title
        for number, task in enumerate(content.tasks)
    ]
    first = next((shown for shown in mapped if shown.method == "nsm"), None)
    first = first or next(iter([*mapped, *content.finished]), None)
    return {
        "systems": systems,
        "tasks": titles,
        "runs": list(runs),
        "first": first.number if first else 0,
        "figures": {
            figure.name: {
                "name": figure_name(figure),
                "title": figure.title,
                "percent": figure.percent,
            }
            for figure in shown_figures(_metrics(content))
        },
        "measures": [measure["key"] for measure in _measures()],
        "pictures": pictures.made,
        "most_classes": CLASSES,
        "map_note": f"This run has no map: {_of_runs(mapped, content)} one, the first seeds first; "
        "equida report --maps N makes more.",
    }


def _idea(method: str) -> str:
    known = [part for part in method_parts(method) if METHODS.get(part) is not None]
    return " ".join(describe_method(part).idea for part in known)


def _unfinished(entry: Entry) -> dict[str, Any]:
    assert entry.run is not None
    return {
        "path": str(entry.run.path),
        "task": entry.task,
        "system": entry.variant.title,
        "seed": entry.seed,
        "reason": entry.failure or "unfinished: start it again, and it resumes",
    }


def _configurations(content: PageContent) -> list[dict[str, Any]]:
    return [
        {
            "title": content.task_title(number),
            "runs": [_configuration(content, s) for s in content.finished if s.task == number],
        }
        for number in range(len(content.tasks))
    ]


def _configuration(content: PageContent, shown: ShownRun) -> dict[str, Any]:
    config = shown.run.config
    return {
        "system": shown.system,
        "label": content.systems[shown.system].label,
        "seed": shown.seed,
        "path": str(shown.run.path),
        "rerun": rerun_command(shown.run.path, shown.run.config),
        "config": json.dumps(dataclasses.asdict(config), indent=1),
        **_adapt(config),
    }


def _adapt(config: RunConfig) -> dict[str, str | None]:
    """The command that makes a run, or why there is none."""
    try:
        command = adapt_command(config)
    except InputError as error:
        # A plug-in that is not installed here costs its command, not the page.
        return {"adapt": None, "no_command": f"equida adapt cannot make this run here: {error}"}
    why = "This run was trained on data in memory, so no equida adapt can make it again."
    return {"adapt": command, "no_command": None if command else why}


def _of_runs(some: Sequence[ShownRun], content: PageContent) -> str:
    has = "has" if len(some) == 1 else "have"
    return f"{len(some)} of {counted(len(content.finished), 'run')} {has}"


def _limits(content: PageContent, mapped: Sequence[ShownRun], pictures: Pictures) -> list[str]:
    lines = []
    if len(mapped) < len(content.finished):
        lines.append(
            f"{_of_runs(mapped, content)} a map, each of at most {POINTS} evenly chosen target "
            "samples; equida report --maps N makes more."
        )
    elif mapped:
        lines.append(f"A map shows at most {POINTS} evenly chosen target samples.")
    if pictures.refused:
        lines.append(
            f"The page holds {len(pictures.made)} pictures, its limit; where one is missing, "
            "the name of the sample is shown alone."
        )
    if any(len(shown.result["classes"]) > CLASSES for shown in content.finished):
        lines.append(f"Panels by class show the {CLASSES} classes that differ the most.")
    return lines


def _common_folder(runs: Sequence[Run]) -> Path:
    """The folder that all runs are below; that of a single run is its own."""
    return Path(os.path.commonpath([run.path.resolve() for run in runs])) if runs else Path()


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
    return require(name, f"the page needs {name.partition('.')[0]}", "equida[report]")
