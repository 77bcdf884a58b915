"""The counts that `python -m benchmarks harm` prints, on runs made by hand."""

from benchmarks.harm import Counts, count
from equida.runs.entry import Entry
from equida.runs.variant import Variant


def entry(method: str, accuracy: float, warning: str = "", *, seed: int = 0) -> Entry:
    last = {"step": 1.0, "accuracy": accuracy}
    harm = {"levelled": warning == "levelled", "collapsed": warning == "collapsed"}
    result = {"metric": "accuracy", "last": last, "picks": {}, "harm": harm}
    return Entry(Variant(method), "A2W", seed, result)


def test_runs_are_judged_by_source_only_of_their_seed() -> None:
    """Of seed 0: NSM is 2 points lower and warned of, BNM 2 lower, CWSM half a point lower, MCC
    higher but warned of. Of seed 1: as high as source only. Seed 2 has no source only."""
    entries = [
        entry("source_only", 0.70),
        entry("nsm", 0.68, "levelled"),
        entry("bnm", 0.68),
        entry("cwsm", 0.695),
        entry("mcc", 0.75, "collapsed"),
        entry("source_only", 0.60, seed=1),
        entry("nsm", 0.60, seed=1),
        entry("nsm", 0.10, seed=2),
    ]
    assert count(entries) == Counts(harmed=2, found=1, unharmed=3, warned=1)


def test_runs_without_a_check_or_labels_are_left_out() -> None:
    unknown = Entry(Variant("nsm"), "A2W", 0, {"metric": "accuracy", "last": {}, "picks": {}})
    unchecked = entry("bnm", 0.5)
    assert unchecked.result is not None
    bare = {name: value for name, value in unchecked.result.items() if name != "harm"}
    entries = [entry("source_only", 0.7), unknown, Entry(Variant("bnm"), "A2W", 0, bare)]
    assert count(entries) == Counts()
