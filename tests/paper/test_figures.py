"""Sample images and t-SNE."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from equida.errors import InputError
from equida.paper.figures import _figures_phrase, palette, sample_figure
from equida.paper.items import PaperContext
from equida.paper.study import paper_study
from equida.runs.read import Run
from equida.training.config import RunConfig
from equida.training.recipe import Recipe


@pytest.mark.slow(reason="draws many photographs")
def test_samples_of_every_domain(office31: Path, paper_runs: Path, tmp_path: Path) -> None:
    found = paper_study([], [paper_runs], tmp_path, images={"office31": str(office31)})
    assert found.items[1].status == "1 of 3"
    assert (tmp_path / "samples-office31.png").stat().st_size > 20_000


def test_as_many_colours_as_classes_are_told_apart() -> None:
    assert len({tuple(colour) for colour in palette(65).round(3).tolist()}) == 65


@pytest.mark.slow(reason="reads many runs")
def test_images_that_cannot_be_drawn_are_a_remark(
    paper_runs: Path, context_of: Callable[[Path], PaperContext], tmp_path: Path
) -> None:
    """A folder that a run names may lack a domain by now; the user's own must have it."""
    context = context_of(paper_runs)
    (tmp_path / "office" / "amazon").mkdir(parents=True)
    group = context.groups["office31"]
    entry = group.entries[0]
    assert entry.run is not None
    assert entry.run.config.task is not None
    moved = dataclasses.replace(entry.run.config.task, data=str(tmp_path / "office"))
    run = dataclasses.replace(entry.run, config=dataclasses.replace(entry.run.config, task=moved))
    entries = (dataclasses.replace(entry, run=run), *group.entries[1:])
    groups = {"office31": dataclasses.replace(group, entries=entries)}
    context = dataclasses.replace(context, groups=groups)
    item = sample_figure(context, {}, tmp_path, lambda images: "equida paper")
    assert "Office-31 is not drawn: " in item.remarks[0]
    with pytest.raises(InputError, match="Office-31"):
        sample_figure(context, {"office31": moved.data or ""}, tmp_path, lambda images: "")


def test_figures_beside_a_drawing_are_of_what_is_drawn() -> None:
    last = {"step": 9.0, "accuracy": 0.5, "equity": 0.1, "discriminability": 0.2}
    kept = {"step": 5.0, "accuracy": 0.8, "equity": 0.6, "discriminability": 0.7}
    result = {"metric": "accuracy", "kept": "snd", "last": last, "picks": {"snd": kept}}
    run = Run(Path("run"), RunConfig("nsm", Recipe()), result)
    assert _figures_phrase(run) == "accuracy 80.0 %, equity 0.60, discriminability 0.70"
