"""The page on theory: what `equida theory` finds, computed when the site is built."""

from pathlib import Path

from from_registry import wide_table, write
from sphinx.application import Sphinx

from equida.paper.theory.checks import QUICK, Check, Context
from equida.paper.theory.figures import draw_surfaces
from equida.paper.theory.study import TheoryStudy, run_theory

TITLES = {
    "holds": "What holds",
    "paper wrong": "What the paper has wrong",
    "paper silent": "What the paper does not say",
    "differs": "Figures that differ from the printed ones",
}


def escaped(text: str) -> str:
    """Text for a cell of a table; bars and dollars would be markup there."""
    return " ".join(text.replace("|", "\\|").replace("$", "\\$").replace("*", "\\*").split())


def section(verdict: str, checks: list[Check]) -> str:
    rows = [
        [escaped(text) for text in (check.claim, check.reference, check.found, check.explanation)]
        for check in checks
    ]
    head = ["claim", "place", "found", "explanation"]
    return f"## {TITLES[verdict]}\n\n{wide_table(head, rows)}"


def page(study: TheoryStudy) -> str:
    parts = [
        "# The paper, checked",
        "The paper is Zhang et al. 2022, *On the Equity of Nuclear Norm Maximization in"
        " Unsupervised Domain Adaptation* ([arXiv 2204.05596](https://arxiv.org/abs/2204.05596))."
        f" `equida theory` recomputes everything in it that needs no training: {len(study.checks)}"
        " checks by closed forms, by all one-hot matrices, by autograd and by searches from random"
        " starts. This page is made by its quick form (`--quick`) when the site is built; without"
        " that flag it tries more, and measures the complexity table too.",
        "![The eight losses over two rows of two classes](_generated/surfaces.png)",
        "*Minus each loss over two predictions of two classes. MaxSquare is as happy with both"
        " samples in one class as with one in each; the others are not.*",
    ]
    for verdict in ("paper wrong", "differs", "paper silent", "holds"):
        chosen = [c for c in study.checks if c.verdict == verdict and c.section != "complexity"]
        if chosen:
            parts.append(section(verdict, chosen))
    return "\n\n".join(parts) + "\n"


def make_page(app: Sphinx) -> None:
    docs = Path(app.srcdir)
    (docs / "_generated").mkdir(exist_ok=True)
    study = run_theory(Context(QUICK))
    draw_surfaces(docs / "_generated")
    write(docs / "theory.md", page(study))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", make_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
