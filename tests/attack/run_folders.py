"""Damaged runs: one never stops a report, a comparison or the paper, and is said in one line."""

import contextlib
import functools
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.attack import _HOLDERS, Case, Outcome, family, short_run, small_data

FILES = ("config.json", "result.json", "log.jsonl", "predictions.safetensors", "model.safetensors")
STRANGE: tuple[Any, ...] = (
    None, True, 0, -1, 2**70, 1e308, float("nan"), "", "\x1b[31m", "\x00", "\ud800", "../..", [],
    [1], {}, {"": 1}, [[[]]], {"last": {}}, "x" * 100_000,
)  # fmt: skip


@functools.cache
def runs() -> Path:
    """A folder with two runs of a grid and one by `adapt`; it must not be changed."""
    from equida.cli import main

    holder = tempfile.TemporaryDirectory(prefix="attack-runs-")
    _HOLDERS.append(holder)
    root = Path(holder.name)
    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
        assert main(short_run(root / "alone")) == 0
        assert main([*bench(root / "grid"), "--methods", "nsm,bnm"]) == 0
    return root


def bench(out: Path) -> list[str]:
    flags = ["bench", "office31", "--data", str(small_data() / "office.npz"), "--out", str(out)]
    flags += ["--tasks", "A2W", "--seeds", "1", "--iterations", "4", "--evaluate-every", "2"]
    return [*flags, "--batch-size", "8", "--bottleneck", "4", "--jobs", "1"]


def damage(file: Path, random: Random) -> str:
    """Spoil a file in one of many ways; returns which one."""
    old = file.read_bytes()
    ways: dict[str, Callable[[], object]] = {
        "empty": lambda: file.write_bytes(b""),
        "cut": lambda: file.write_bytes(old[: random.randrange(len(old))]),
        "zeros": lambda: file.write_bytes(bytes(len(old))),
        "noise": lambda: file.write_bytes(random.randbytes(len(old))),
        "flipped bytes": lambda: file.write_bytes(_flipped(old, random)),
        "doubled": lambda: file.write_bytes(old + old),
        "a folder": lambda: _replaced(file, file.mkdir),
        "a link to itself": lambda: _replaced(file, lambda: file.symlink_to(file)),
        "a pipe": lambda: _replaced(file, lambda: os.mkfifo(file)),
        "absent": lambda: _replaced(file, lambda: None),
        "deep": lambda: file.write_bytes(b"[" * 100_000),
        "not text": lambda: file.write_bytes(b"\xff\xfe\xfa" + old),
    }
    if file.suffix == ".safetensors":
        ways |= {"other tensors": lambda: _other_tensors(file, random)}
    else:
        for kind in ("value", "field", "branch"):
            ways |= {f"other {kind} {n}": lambda: _other_value(file, random) for n in range(4)}
    way = random.choice([*ways])
    ways[way]()
    return f"{file.name}: {way}"


def _replaced(file: Path, make: Callable[[], object]) -> None:
    file.unlink()
    make()


def _flipped(old: bytes, random: Random) -> bytes:
    new = bytearray(old)
    for _ in range(random.randrange(1, 20)):
        new[random.randrange(min(len(new), 2000))] = random.randrange(256)
    return bytes(new)


def _other_value(file: Path, random: Random) -> None:
    """Replace or remove a value somewhere in a JSON file, or in a line of one."""
    lines = file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]
    number = random.randrange(len(lines))
    root: Any = {"": json.loads(lines[number])}
    places: list[tuple[Any, Any]] = [(root, "")]
    for holder, key in places:
        inner = holder[key]
        if isinstance(inner, dict):
            places += [(inner, name) for name in inner]
        elif isinstance(inner, list):
            places += [(inner, index) for index in range(min(len(inner), 3))]
    holder, key = random.choice(places)
    if random.random() < 0.2 and key != "":
        del holder[key]
    else:
        holder[key] = random.choice(STRANGE)
    lines[number] = json.dumps(root[""])
    file.write_text("\n".join(lines) + "\n")


def _other_tensors(file: Path, random: Random) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    tensors = load_file(file)
    name = random.choice([*tensors])
    ways: list[Any] = [
        lambda t: t.reshape(-1)[:0], lambda t: t.double(), lambda t: t.flatten(), lambda t: t[None],
        lambda t: torch.stack([t, t]), lambda t: t.to(torch.uint8),
        lambda t: torch.full_like(t, -1),
    ]  # fmt: skip
    changed = random.choice([*ways, None])
    if changed is None:
        del tensors[name]
    else:
        tensors[name] = changed(tensors[name]).contiguous()
    save_file(tensors, file)


def _spoiled(case: Case, folder: Path) -> str:
    """Damage one file of a run, now and then two."""
    count = case.random.choice([1, 1, 1, 2])
    return "; ".join(damage(folder / n, case.random) for n in case.random.sample(FILES, count))


@family("damaged grids", quick=0, long=30)
def damaged_grids(case: Case) -> Outcome:
    """A comparison does a damaged run again, and no other."""
    shutil.copytree(runs() / "grid", case.folder / "grid")
    folder = case.random.choice(sorted((case.folder / "grid").glob("*/config.json"))).parent
    what = _spoiled(case, folder)
    outcome = case.command(*bench(case.folder / "grid"), "--methods", "nsm,bnm", codes=(0,))
    return Outcome(outcome.verdict, f"{what}\n{outcome.detail}")


@family("damaged runs", quick=12, long=1500)
def damaged_runs(case: Case) -> Outcome:
    """One of three runs; whatever reads many of them must go on with the others."""
    shutil.copytree(runs(), case.folder / "runs")
    root = case.folder / "runs"
    alone, grid = root / "alone", sorted((root / "grid").glob("*/config.json"))[0].parent
    folder = case.random.choice([alone, grid])
    what = _spoiled(case, folder)
    toy, new = case.data / "toy.npz", case.folder / "new"
    verbs: dict[str, tuple[list[object], tuple[int, ...]]] = {
        "report": (["report", root, "--out", "page.html"], (0,)),
        "report one": (["report", folder, "--out", "page.html"], (0, 2)),
        "paper": (["paper", root, "--out", "paper"], (0,)),
        "predict": (["predict", folder, toy], (0, 2)),
        "export": (["export", folder, "--no-onnx", "--out", new], (0, 2)),
        "adapt --from": (["adapt", "--from", folder, "-t", f"{toy}:b", "--iterations", 2,
                          "--batch-size", 8, "--out", new, "--quiet"], (0, 2)),
        "rerun": (["rerun", folder, "--quiet"], (0, 1, 2)),
        "adapt": ([*short_run(alone)], (0, 2)),
    }  # fmt: skip
    name = [*verbs][case.number % len(verbs)]
    arguments, codes = verbs[name]
    outcome = case.call(*arguments, codes=codes)
    return Outcome(outcome.verdict, f"{what}\n{outcome.detail}")
