"""The paper's numbers as a reference for a table of results."""

from collections.abc import Sequence
from dataclasses import dataclass

from equida.paper.tables import R_TABLES, RESULTS, PaperRow, PaperTable
from equida.runs.variant import Variant, hyperparameters


@dataclass(frozen=True)
class ResultReference:
    """The main table of a data set; rows with another r come from its table of two r."""

    table: PaperTable
    r_table: PaperTable

    @property
    def methods(self) -> Sequence[str]:
        return [row.method for row in self.table.rows]

    def row(self, variant: Variant) -> PaperRow | None:
        """The row of a method with its default hyper-parameters, or with another r."""
        if variant.recipe:
            return None
        default = self.table.row(variant.method, variant.overrides)
        return default or self.r_table.row(variant.method, variant.overrides)

    def notes(self, variants: Sequence[Variant]) -> list[str]:
        notes = [_origin(self.table)]
        if any(self.table.row(v.method, v.overrides) is None for v in variants):
            notes.append(f"Rows with another r: Table {self.r_table.number}.")
        return notes + self.table.notes_on([variant.method for variant in variants])


@dataclass(frozen=True)
class RReference:
    """The table of a data set that compares two values of r."""

    table: PaperTable

    @property
    def methods(self) -> Sequence[str]:
        return list(dict.fromkeys(row.method for row in self.table.rows))

    def row(self, variant: Variant) -> PaperRow | None:
        """The row with the variant's r, which it may have by default."""
        if variant.recipe or not set(variant.overrides) <= {"r"}:
            return None
        values = hyperparameters(variant.method, variant.overrides, self.table.benchmark)
        return self.table.row(variant.method, {"r": values.get("r")})

    def notes(self, variants: Sequence[Variant]) -> list[str]:
        methods = [variant.method for variant in variants]
        return [_origin(self.table), *self.table.notes_on(methods)]


def reference(benchmark: str) -> ResultReference | None:
    """The paper's results on a data set; None where it has none."""
    if benchmark not in RESULTS:
        return None
    return ResultReference(RESULTS[benchmark], R_TABLES[benchmark])


def _origin(table: PaperTable) -> str:
    return (
        f"Below each figure: the paper's (Table {table.number}, {table.network}), set as it is"
        " there, and ours minus it."
    )
