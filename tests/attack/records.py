"""JSON records with wrong types, odd values, deep nesting and cut ends."""

import functools
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from tests.attack import Case, Outcome, family, short_run, worst

ODD: list[Any] = [
    None, True, 0, -1, 10**30, -(10**400), 1e308, float("nan"), float("inf"), "", "\x1b[31mred",
    "a\nb", "\x00", "../..", "x" * 5000, [], {}, [[]], {"a": {}}, [1, "a", None], "nsm", "\ud800",
]  # fmt: skip


def mutated(value: Any, random: Random, odd: list[Any] = ODD) -> Any:
    """`value` with something inside it replaced, removed or added."""
    if isinstance(value, dict) and value and random.random() < 0.85:
        key = random.choice([*value])
        rest = {name: inner for name, inner in value.items() if name != key}
        chance = random.random()
        if chance < 0.1:
            return rest
        if chance < 0.2:
            return {**value, random.choice(["", "\x1b", "schema", "extra"]): random.choice(odd)}
        return {**rest, key: mutated(value[key], random, odd)}
    if isinstance(value, list) and value and random.random() < 0.6:
        place = random.randrange(len(value))
        return [*value[:place], mutated(value[place], random, odd), *value[place + 1 :]]
    return random.choice(odd)


def damaged(content: bytes, random: Random) -> bytes:
    """The bytes cut, changed, repeated or replaced."""
    place = random.randrange(len(content) + 1)
    noise = random.randbytes(random.choice([1, 4, 50]))
    return random.choice(
        [
            content[:place],
            content[:place] + noise + content[place:],
            content[:place] + noise + content[place + len(noise) :],
            content[place:],
            content + content,
            b"",
            b"\0" * 100,
            b"[" * 100_000,
            b'{"a":' * 50_000,
            b"9" * 10_000,
            b'"\\ud800"',
            b"\xef\xbb\xbf" + content,
        ]
    )


def replaced(file: Path, random: Random) -> None:
    """Put something that is not a file in the place of `file`."""
    file.unlink(missing_ok=True)
    kind = random.choice(["pipe", "folder", "loop", "dangling", "device"])
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to({"loop": file.name, "dangling": "gone", "device": "/dev/zero"}[kind])


@functools.cache
def finished_run() -> Path:
    """A finished run on rows, made once in a process."""
    import contextlib
    import io

    from equida.cli import main

    holder = tempfile.TemporaryDirectory(prefix="attack-run-")
    _HOLDERS.append(holder)
    out = Path(holder.name, "run")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert main(short_run(out)) == 0
    return out


_HOLDERS: list[tempfile.TemporaryDirectory[str]] = []


def look_at(run: Path) -> None:
    """What somebody in a notebook does with a run."""
    from equida import load_run

    loaded = load_run(run)
    repr(loaded)
    loaded._repr_html_()
    loaded.curves()
    if loaded.result is not None:
        _ = loaded.picks, loaded.classes, loaded.predictions


def _uses(case: Case, run: Path) -> list[Callable[[], Outcome]]:
    rows = np.zeros((3, 8), "f4")

    def predict() -> None:
        from equida import load_run

        load_run(run).predict(rows)

    codes = (0, 1, 2)
    return [
        lambda: case.attempt(lambda: look_at(run), "load_run"),
        lambda: case.attempt(predict, "predict rows"),
        lambda: case.call("predict", run, case.data / "photos"),
        lambda: case.call("export", run, "--no-onnx", "--out", case.folder / "export"),
        lambda: case.call(*short_run(run)),
        lambda: case.call("report", run.parent, "--maps", 0, "--out", case.folder / "r.html"),
        lambda: case.call("rerun", run, "--quiet", codes=codes),
        lambda: case.call("paper", run.parent, "--out", case.folder / "paper", codes=codes),
    ]


@family("records", quick=24, long=1500)
def records(case: Case) -> Outcome:
    """A file of a run with something wrong in it, and everything that reads it."""
    random, run = case.random, case.folder / "runs" / "run"
    shutil.copytree(finished_run(), run)
    file = run / random.choice(["config.json", "config.json", "result.json", "log.jsonl"])
    chance = random.random()
    if chance < 0.1:
        replaced(file, random)
    elif chance < 0.35:
        file.write_bytes(damaged(file.read_bytes(), random))
    elif file.suffix == ".jsonl":
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        text = "".join(json.dumps(mutated(line, random)) + "\n" for line in lines)
        file.write_text(text)
    else:
        file.write_text(json.dumps(mutated(json.loads(file.read_text()), random)))
    outcome = random.choice(_uses(case, run))()
    return Outcome(outcome.verdict, f"{file.name}\n{outcome.detail}")


TEXTS = [
    "x", "long-tail:", "long-tail:abc", "long-tail:nan", "long-tail:-5", "long-tail:30:-1",
    "long-tail:1e400", "long-tail:30:" + "9" * 30, "classes:abc", "classes:2:x", "classes:99999999",
    "{", "{}", "[]", "[1e308, 1e308]", '{"0": "x"}', '{"\\ud800": 1.0}', "[" * 100_000,
    f"[{10**400}, 0]", "~nobody/x", "a,b", "a" * 5000, "a:b", "a:b:c", "1e999", "/etc/passwd",
    "office31", "no_such:data", "a.npz:b", "../x.pt2", "safn+", "+", "nsm+nsm", "\x00", "\u200b",
]  # fmt: skip
"""Texts that are nearly what some field of a record holds: names, paths, protocols, shares, JSON.
"""


def text_places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where a record holds a text, or nothing where there may be one."""
    if value is None or isinstance(value, str):
        return [path]
    if not isinstance(value, dict | list):
        return []
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    return [place for key, inner in pairs for place in text_places(inner, (*path, key))]


@family("texts of records", quick=8, long=1500)
def record_texts(case: Case) -> Outcome:
    """A run whose config has a well-formed text of the wrong meaning, beside a run that is good."""
    random, run = case.random, case.folder / "runs" / "run"
    for name in ("run", "good"):
        shutil.copytree(finished_run(), run.with_name(name))
    stored = json.loads((run / "config.json").read_text())
    stored["overrides"] |= {"prior": None}
    shares = [("task", "source_shares"), ("task", "target_shares"), ("overrides", "prior")]
    # Each place is as likely as another, however deep it is; those with a grammar are more so.
    *inside, last = random.choice([*text_places(stored), *shares * 4])
    held = functools.reduce(lambda part, key: part[key], inside, stored)
    held[last] = random.choice(TEXTS)
    (run / "config.json").write_text(json.dumps(stored))
    report = case.call("report", run.parent, "--maps", 0, "--out", case.folder / "r", codes=(0,))
    outcome = worst([report, random.choice(_uses(case, run))()])
    return Outcome(outcome.verdict, f"{[*inside, last]}: {held[last]!r:.80}\n{outcome.detail}")


THEORY = {
    "schema": 2,
    "figures": ["surfaces.png"],
    "checks": [
        {
            "verdict": "holds", "claim": "c", "reference": "Eq. 1", "explanation": "e",
            "found": "1.0", "printed": 1.0, "table": table, "row": "a", "column": "B",
            "computed": {"printed_order": "O(BC)"}, "as_documented": True,
        }
        for table in (1, 2, 3, None)
    ],
}  # fmt: skip


@family("theory record", quick=6, long=300)
def theory_record(case: Case) -> Outcome:
    """A theory.json with something wrong in it."""
    random, file = case.random, case.folder / "theory.json"
    file.write_text(json.dumps(THEORY))
    if random.random() < 0.3:
        file.write_bytes(damaged(file.read_bytes(), random))
    else:
        file.write_text(json.dumps(mutated(THEORY, random)))
    runs = finished_run().parent
    out = case.folder / "paper"
    return case.call("paper", runs, "--theory", file, "--out", out, codes=(0, 1, 2))
