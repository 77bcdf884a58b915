"""Pages that are made from the code: methods, losses, commands, data sets and recipes.

They are written when the build begins and are not kept in the repository.
"""

import csv
import dataclasses
import importlib
import inspect
import io
import re
import sys
import tomllib
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch
from sphinx.application import Sphinx
from torch.utils.flop_counter import FlopCounterMode

from equida import alignment, losses
from equida.cli import VERBS, arguments_class
from equida.cli._parse import parse
from equida.data import BENCHMARKS
from equida.fields import short_text, specs
from equida.methods import (
    METHODS,
    STANDARD,
    Description,
    Output,
    TaskRows,
    build_method,
    describe_method,
)
from equida.training.recipe import RECIPES

RESULTS = {
    "Office-31": {
        "office31_efficientnet_lite0": "EfficientNet-Lite0",
        "office31_inception_v3": "Inception-v3",
        "office31_resnet50": "ResNet-50 of 2015",
        "office31_paper_resnet50": "ResNet-50, fine-tuned (the paper)",
    },
    "Office-Home": {
        "office_home_resnet50": "ResNet-50 of 2015",
        "office_home_paper_resnet50": "ResNet-50, fine-tuned (the paper)",
    },
}
"""The measured tables of each data set, in the folder `results`."""
MEAN = "Avg"


def write(path: Path, text: str) -> None:
    """Write a page only if it has changed, so that the next build is quick."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def table(head: list[str], rows: list[list[str]]) -> str:
    cells = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in cells) + "\n"


def wide_table(head: list[str], rows: list[list[str]], kind: str = "prose") -> str:
    """A table whose cells wrap; the last one of "prose" holds sentences and is wide."""
    return f":::{{table}}\n:class: {kind}\n\n{table(head, rows)}:::"


def measured(docs: Path, file: str) -> dict[str, dict[str, str]]:
    """A table of `results/`: its rows by their first cell."""
    with (docs / "results" / f"{file}.csv").open() as lines:
        return {row["method"]: row for row in csv.DictReader(lines)}


def tasks(row: dict[str, str]) -> list[str]:
    """The tasks that a measured table has columns of."""
    return [name for name in row if "2" in name]


def accuracies(docs: Path, method: str) -> list[str]:
    """For each data set, the rows of one method, each below that of source only."""
    parts = []
    for title, files in RESULTS.items():
        rows, head = [], []
        for file, network in files.items():
            found = measured(docs, file)
            names = dict.fromkeys(("source_only", method)) if method in found else ()
            for name in names:
                columns = [*tasks(found[name]), MEAN]
                head = ["network", "method", *map(arrow, columns)]
                rows.append([network, f"`{name}`", *(found[name][key] for key in columns)])
        if rows:
            parts.append(
                f"{title}, frozen features unless it says otherwise; accuracy in per cent, mean ±"
                " standard deviation over seeds, last step ([how they were measured]"
                f"(../benchmarks.md)):\n\n{table(head, rows)}"
            )
    return parts


def arrow(task: str) -> str:
    return task.replace("2", "→")


def gains(docs: Path, method: str) -> list[str]:
    """For each measured table that has the method, where it helps most and where it hurts or helps
    least, against source only.

    The sign and the size come from the means of the table.
    """
    lines = []
    for title, files in RESULTS.items():
        for file, network in files.items():
            found = measured(docs, file)
            if method not in found or method == "source_only":
                continue
            points = {
                key: float(found[method][key].split()[0])
                - float(found["source_only"][key].split()[0])
                for key in [*tasks(found[method]), MEAN]
            }
            mean = points.pop(MEAN)
            best, worst = (choose(points, key=points.__getitem__) for choose in (max, min))
            said = "hurts" if points[worst] < -0.05 else "helps least"
            lines.append(
                f"- {title}, {network}: {signed(mean)} points on average; it helps most on"
                f" {arrow(best)} ({signed(points[best])}) and {said} on {arrow(worst)}"
                f" ({signed(points[worst])})."
            )
    return lines


def signed(points: float) -> str:
    return f"{points:+.1f}".replace("-", "−")


@cache
def operations(name: str) -> int:
    """The operations of a training step in matrix products, forward and backward.

    Counted on random rows in the shape of the benchmarks: two batches of 36 x 1280, a bottleneck of
    256 and 31 classes. A method that never sees the target has one batch.
    """
    rows, width, bottleneck, classes = 36, 1280, 256, 31
    random = torch.Generator().manual_seed(0)
    body, head = torch.nn.Linear(width, bottleneck), torch.nn.Linear(bottleneck, classes)
    method = build_method(name, bottleneck, classes, head)
    labels = torch.arange(4 * classes) % classes
    x = torch.randn(len(labels), width, generator=random) + labels[:, None]
    if method.prepares:  # which is not a part of a step, and done here on a few columns
        few = x[:, :8]
        method.use_prepared(method.prepare(TaskRows(few, labels, few, seed=0)))
    with FlopCounterMode(display=False) as counter:
        features = body(x[:rows])
        source = Output(features, head(features))
        target = source
        if method.uses_target:
            features = body(x[rows : 2 * rows])
            target = Output(features, head(features), torch.arange(rows, 2 * rows))
        terms = method(source, labels[:rows], target, 0.5)
        loss = torch.nn.functional.cross_entropy(source.logits, labels[:rows])
        loss = torch.stack([*terms.values(), loss * (not method.owns_cross_entropy)]).sum()
        loss.backward()
    return int(counter.get_total_flops())


def cost(name: str) -> str:
    """What a step of a method computes, beside one of source only."""
    share = operations(name) / operations("source_only")
    beside = f", {share:.1f} times those of source only" if name != "source_only" else ""
    text = (
        f"A step on frozen features takes {operations(name) / 1e6:.0f} million operations in matrix"
        f" products{beside} (two batches of 36 rows of 1280, a bottleneck of 256, 31 classes;"
        " counted when this page was built). On images, the backbone outweighs all of them."
    )
    if METHODS[name].method.prepares:
        text += " Before the first step it labels all of the target, once."
    return text


def method_page(docs: Path, method: Description, notes: dict[str, str]) -> str:
    parts = [f"# `{method.name}`", method.idea]
    if formula := notes.get("formula"):
        parts.append(f"It adds to source cross-entropy:\n\n$$\n{formula}\n$$")
    if method.notes:
        parts.append(method.notes)
    lines = "\n".join(gains(docs, method.name))
    if "when" in notes or lines:
        parts.append("## When it helps, and when it hurts")
    if when := notes.get("when"):
        parts.append(when)
    if lines:
        parts.append(f"Measured against source only:\n\n{lines}")
    fields = [
        [
            f"`{field.name}`",
            short_text(field.default),
            f"{field.range.low:g} to {field.range.high:g}" if field.range else "",
            field.meaning,
        ]
        for field in method.hyperparameters
    ]
    if fields:
        head = ["name", "default", "range to search", "meaning"]
        parts.append("## Hyper-parameters\n\n" + wide_table(head, fields))
    presets = [
        f"- `{name}`: {', '.join(f'{key} = {short_text(value)}' for key, value in preset.items())}"
        for name, preset in method.presets.items()
    ]
    if presets:
        parts.append("Values for benchmarks:\n\n" + "\n".join(presets))
    parts.append(f"## Cost\n\n{cost(method.name)}")
    if found := accuracies(docs, method.name):
        parts += ["## Measured", *found]
    if method.source_free:
        parts.append("It also works without source data: `equida adapt --from RUN --target DIR`.")
    parts.append(f"Reference: {method.reference}.")
    parts.append(
        "```sh\nequida adapt --source photos/ --target clipart/ --features"
        f" --method {method.name}\n```"
    )
    return "\n\n".join(parts) + "\n"


def method_pages(docs: Path) -> None:
    notes = tomllib.loads((docs / "method_notes.toml").read_text())
    # A page of the gallery may have registered another one.
    own = [name for name in METHODS if METHODS[name].method.__module__.startswith("equida.")]
    for old in (docs / "methods").glob("*.md"):
        if old.stem not in {*own, "index"}:
            old.unlink()
    rows = []
    for name in own:
        described = describe_method(name)
        write(docs / "methods" / f"{name}.md", method_page(docs, described, notes.get(name, {})))
        eleven = "yes" if name in STANDARD else ""
        free = "yes" if described.source_free else ""
        rows.append([f"[{name}]({name}.md)", described.idea, eleven, free])
    head = ["method", "idea", "in the standard comparison", "works without source data"]
    names = "\n".join(own)
    write(
        docs / "methods" / "index.md",
        "# Methods\n\nA method is what is added to the cross-entropy of the source. Two methods"
        " compose with a plus sign: `--method cdan+nsm`. Each page is made from the code.\n\n"
        f"{wide_table(head, rows)}\n\n"
        f"```{{toctree}}\n:hidden:\n\n{names}\n```\n",
    )


METHOD_OF = {"information_maximization": "im"}
"""The methods that do not have the name of their loss."""


def pushes_towards(loss: Callable[[torch.Tensor], torch.Tensor]) -> str:
    """What lowers the loss, with its defaults: sure predictions, and classes of equal size.

    Both are tried on six rows and three classes: one-hot rows against undecided ones, and classes
    of sizes 2, 2, 2 against 4, 1, 1.
    """
    one_hot = 50.0 * torch.eye(3)
    best = float(loss(one_hot[[0, 0, 1, 1, 2, 2]]))
    tried = {
        "sure predictions": loss(torch.zeros(6, 3)),
        "equal class sizes": loss(one_hot[[0, 0, 0, 0, 1, 2]]),
    }
    return ", ".join(name for name, other in tried.items() if best < float(other) - 1e-4)


def authors(reference: str) -> str:
    """A reference without its number: "Cui et al. 2020"."""
    return reference.split(", arXiv")[0]


def first_paragraph(documented: object) -> str:
    return " ".join((inspect.getdoc(documented) or "").split("\n\n")[0].split()).replace("|", "\\|")


def users_of(name: str) -> list[str]:
    """The methods whose files use a name of `equida.alignment`."""
    files = {method: sys.modules[METHODS[method].method.__module__] for method in METHODS}
    return [method for method, module in files.items() if hasattr(module, name)]


def loss_page(docs: Path) -> None:
    notes = tomllib.loads((docs / "method_notes.toml").read_text())
    rows = []
    for name in losses.__all__:
        loss: Any = getattr(losses, name)
        method = METHOD_OF.get(name, name)
        formula = re.sub(r"\\lambda(\\,)?\s*", "", notes.get(method, {}).get("formula", ""))
        formula = formula.replace(r"\|", r"\Vert ")  # a bar would end the cell
        said = "<br>".join(f"${part}$" for part in formula.split(r", \quad ") if part)
        page = f"methods/{method}.md" if method in METHODS else "api/losses.md"
        prior = "yes" if "prior" in inspect.signature(loss).parameters else ""
        rows.append(
            [
                f"[`{name}`]({page})",
                said or first_paragraph(loss),
                prior,
                authors(describe_method(method).reference) if method in METHODS else "",
                pushes_towards(loss),
            ]
        )
    head = ["loss", "what is minimised", "prior", "reference", "pushes towards"]
    parts = [
        "# Losses",
        "What is minimised on target predictions: `from equida.losses import nsm`, then"
        " `nsm(target_logits)`. $P$ is the softmax of a batch of $B$ rows and $C$ classes, $H$ the"
        " entropy, $z$ the logits; weights $w$ are on the page of the method. Sure predictions are"
        " discriminable ones, equal class sizes are equity; what a loss pushes towards is tried on"
        " the code when this page is built, with default settings. *Prior*: it can aim at other"
        " class sizes instead.",
        wide_table(head, rows, "formulas"),
        "## Between two domains",
        "What is minimised, or maximised by an adversary, between features or predictions of both"
        " domains (`equida.alignment`), and the methods that use it.",
    ]
    rows = []
    for name in alignment.__all__:
        users = users_of(name)
        links = ", ".join(f"[{user}](methods/{user}.md)" for user in users)
        references = "; ".join(dict.fromkeys(authors(describe_method(u).reference) for u in users))
        rows.append([f"`{name}`", links, references, first_paragraph(getattr(alignment, name))])
    parts.append(wide_table(["name", "methods", "reference", "what it returns"], rows))
    parts.append("Arguments and examples: [losses](api/losses.md), [alignment](api/alignment.md).")
    write(docs / "losses.md", "\n\n".join(parts) + "\n")


def command_page(docs: Path) -> None:
    parts = ["# Command line\n\nWhat each command prints for `--help`."]
    for verb, about in VERBS.items():
        module = importlib.import_module(f"equida.cli.{verb}")
        text = io.StringIO()
        with redirect_stdout(text), suppress(SystemExit):
            parse(arguments_class(module, []), verb, ["--help"])
        sentence = f"{about[0].upper()}{about[1:]}."
        help_text = text.getvalue().strip()
        parts.append(f"## equida {verb}\n\n{sentence}\n\n```text\n{help_text}\n```")
    write(docs / "commands.md", "\n\n".join(parts) + "\n")


def data_page(docs: Path) -> None:
    parts = ["# Data sets and recipes\n\n## Data sets that equida knows"]
    rows = [
        [
            f"`{name}`",
            BENCHMARKS[name].title,
            ", ".join(domain.key for domain in BENCHMARKS[name].domains),
            str(len(BENCHMARKS[name].classes)),
            ", ".join(BENCHMARKS[name].tasks),
        ]
        for name in BENCHMARKS
    ]
    head = ["name", "data set", "domains", "classes", "tasks"]
    parts.append(wide_table(head, rows))
    parts.append(
        "`equida list datasets NAME` says where to get one; `equida doctor NAME --data DIR` checks"
        " what you have."
    )
    parts.append("## Recipes\n\nA recipe is how a network is trained, apart from the method.")
    meanings = specs(type(RECIPES[next(iter(RECIPES))].recipe))
    values = [dataclasses.asdict(RECIPES[name].recipe) for name in RECIPES]
    rows = [
        [f"`{field}`", *(short_text(recipe[field]) for recipe in values), spec.meaning]
        for field, spec in meanings.items()
    ]
    parts.append(wide_table(["field", *RECIPES, "meaning"], rows))
    write(docs / "data_sets.md", "\n\n".join(parts) + "\n")


def make_pages(app: Sphinx) -> None:
    docs = Path(app.srcdir)
    method_pages(docs)
    loss_page(docs)
    command_page(docs)
    data_page(docs)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", make_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
