"""The paper beside runs, written into a folder: what `equida paper` does."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from equida.data import benchmark
from equida.errors import InputError
from equida.fields import checked_value
from equida.files import json_has, refuse_to_replace
from equida.paper.document import paper_json, paper_markdown
from equida.paper.study import PaperStudy, paper_study
from equida.paper.theory_item import find_theory
from equida.progress import display_mode, safe_console
from equida.runs.entry import check_selection
from equida.runs.read import read_runs
from equida.training.folder import RunFolder

RECORD = "paper.json"
DOCUMENT = "paper.md"


def write_paper(
    runs: str | Path | Sequence[str | Path],
    out: str | Path = "paper",
    *,
    select: str = "last",
    images: Mapping[str, str | Path] | None = None,
    theory: str | Path | None = None,
    progress: bool | None = None,
) -> PaperStudy:
    """Recompute every table and figure of the paper from runs, each beside the printed one.

    Args:
        runs: a folder of runs, made by `equida.bench`, or several.
        out: the folder for paper.md, paper.json and the figures.
        select: which step of a run counts: "last", "oracle" (uses target labels), or a validator.
        images: the folder of the images of each data set, by its name, for the figure of samples.
        theory: theory.json of `equida theory`, or its folder; by default it is looked for in
            ./theory and in the folders of runs.
        progress: None shows it in a terminal; True and False force it.
    """
    given = [runs] if isinstance(runs, str | Path) else checked_value(runs, Sequence, "runs")
    roots = [checked_value(each, Path, "runs") for each in given]
    if not roots:
        raise InputError("no runs are given; expected a folder made by equida bench")
    check_selection(select)
    folder = checked_value(out, Path, "out")
    shown = {benchmark(name).name: Path(place) for name, place in (images or {}).items()}
    for name, place in shown.items():
        if not place.is_dir():
            raise InputError(f"{place} is not a folder; expected one with the images of {name}")
    refuse_to_replace(
        [folder / DOCUMENT, folder / RECORD],
        lambda: json_has(folder / RECORD, "select", "verdicts"),
    )
    found = []
    for root in roots:
        there = read_runs(root)
        if not there and theory is None and find_theory([root], here=False) is None:
            raise InputError(f"{root} holds no runs; make some with equida bench or equida adapt")
        found += there
    writer = RunFolder(folder)
    quiet = display_mode(progress) == "silent"
    with safe_console(stderr=True, quiet=quiet).status("reading runs") as status:
        study = paper_study(
            found,
            roots,
            folder,
            select=select,
            images={name: str(place) for name, place in shown.items()},
            theory=_theory_file(theory),
            note=status.update,
        )
    writer.write_text(DOCUMENT, paper_markdown(study))
    writer.write_text(RECORD, paper_json(study))
    return study


def _theory_file(path: str | Path | None) -> Path | None:
    """The file theory.json itself, where its folder is given."""
    if path is None:
        return None
    return Path(path) / "theory.json" if Path(path).is_dir() else Path(path)
