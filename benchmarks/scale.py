"""How time and memory grow: with files, finished runs, rows, images, and classes.

`python -m benchmarks scale [PART ...]` does all parts or some: files, runs, rows, images, classes.
`files:15000` is the part at another size. Every figure is the processor's time of a process of its
own, and the most memory that it had. A slope is that of log time over log size, up to the whole
size: 1 is in proportion, 2 would be the square. Three sizes leave out what a start costs.

Bars: planning walks through each folder once and opens each file once; `bench`, `report` and
`paper` open each file of a run once and stay below 1 GB; a run on a feature file has at most 1.2 GB
of its own beyond imports, however large the file is; no loss makes a tensor larger than all pairs
of both batches; no slope is above 1.15.
"""

import contextlib
import functools
import io
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.bars import judged
from equida import alignment, losses
from equida.data.benchmarks import BENCHMARKS
from equida.data.spec import DataSpec, open_task
from equida.experiments.grid import Grid, chosen_methods, plan
from equida.runs.variant import Variant
from equida.training.config import RunConfig
from equida.training.loop import train
from equida.training.recipe import Recipe

MOST_SLOPE = 1.15
CLASSES, WIDTH = 100, 2048
BATCH, MANY_CLASSES, FEATURES = 2048, 1000, 256
STEPS = 300
SEEDS = 31
"""Eleven systems x six tasks x 31 seeds are 2,046 runs."""


@dataclass(frozen=True)
class Measured:
    """What a process has used for its work."""

    seconds: float
    """Of the processor."""
    peak: float
    """Most memory, in MB, with pages of files that are mapped."""
    own: float
    """Most memory of its own, in MB: without the pages of files."""
    facts: Mapping[str, Any]
    """What the work returned."""


def run(*parts: str) -> None:
    """Print the tables of the parts."""
    known: dict[str, tuple[Callable[[int], None], int]] = {
        "files": (files, 150_000),
        "runs": (runs, 66 * SEEDS),
        "rows": (rows, 200_000),
        "images": (images, 2_000),
        "classes": (classes, BATCH),
    }
    for part in parts or known:
        name, _, size = part.partition(":")
        measure, usual = known[name]
        measure(int(size or usual))


def files(count: int) -> None:
    """Plan a task of so many image files, and list them with `os.scandir`."""
    found: dict[int, dict[str, Measured]] = {}
    for size in (count // 100, count // 10, count):
        with tempfile.TemporaryDirectory() as folder:
            _make_files(Path(folder), size)
            found[size] = {job: _measured(job, folder) for job in ("scandir", "plan")}
    table = _table("planning", "files", "os.scandir", "plan", "ratio", "memory", "lists", "opens")
    for size, jobs in found.items():
        floor, ours = jobs["scandir"], jobs["plan"]
        table.add_row(
            f"{size:,}",
            f"{floor.seconds:.2f} s, {floor.own:.0f} MB",
            f"{ours.seconds:.2f} s, {ours.own:.0f} MB",
            f"{ours.seconds / floor.seconds:.0f}",
            f"{ours.own / max(floor.own, 1.0):.1f}",
            judged("scale", f"planning {size:,} files", ours.facts["lists"], 1, "x each folder"),
            judged("scale", f"planning {size:,} files", ours.facts["opens"], 1, "x each file"),
        )
    _print(table, {"planning": {size: jobs["plan"].seconds for size, jobs in found.items()}})


def runs(count: int) -> None:
    """Finish grids, and do `bench` again, `report` and `paper` of them."""
    grids = sorted({1, max(2, count // 400), max(3, count // 66)})
    verbs = ("bench", "report", "paper")
    found: dict[int, dict[str, Measured]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first = _first_runs(folder)
        for seeds in grids:
            copies = _copy_runs(folder, first, seeds)
            made = {verb: _measured("verb", verb, name, str(copies)) for verb in verbs}
            found[66 * seeds] = made
            shutil.rmtree(copies)
    table = _table("finished runs", "verb", "runs", "time", "memory", "opens", "written")
    for size, made in found.items():
        for verb, used in made.items():
            table.add_row(
                verb,
                f"{size:,}",
                f"{used.seconds:.1f} s",
                judged("scale", f"{verb}, {size:,} runs", used.peak, 1000, "MB"),
                judged("scale", f"{verb}, {size:,} runs", used.facts["opens"], 1, "x each file"),
                f"{used.facts['bytes'] / 1e6:.1f} MB",
            )
    _print(table, {v: {size: made[v].seconds for size, made in found.items()} for v in verbs})


def rows(count: int) -> None:
    """Train on a feature file of so many rows, with and without all that surrounds the steps."""
    found: dict[int, dict[str, Measured]] = {}
    for size in (count // 10, count):
        with tempfile.TemporaryDirectory() as folder:
            file = _make_rows(Path(folder), size)
            jobs = ("steps", "adapt")
            found[size] = {job: _measured(job, str(file), folder) for job in jobs}
    table = _table("rows of 2048 features", "rows", "file", "step", "adapt", "peak", "of its own")
    for size, used in found.items():
        megabytes = size * WIDTH * 4 / 1e6
        table.add_row(
            f"{size:,}",
            f"{megabytes:.0f} MB",
            f"{1e3 * used['steps'].facts['step']:.2f} ms",
            f"{used['adapt'].seconds:.0f} s",
            f"{used['adapt'].peak:.0f} MB",
            judged("scale", f"adapt on {size:,} rows", used["adapt"].own, 1200, "MB"),
        )
    steps = {size: used["steps"].facts["step"] for size, used in found.items()}
    _print(table, {"a training step over rows": steps})


def images(count: int) -> None:
    """Compute features of so many small images with a tiny network."""
    found = {}
    for size in (count // 20, count // 5, count):
        with tempfile.TemporaryDirectory() as folder:
            _make_photographs(Path(folder), size)
            found[size] = _measured("extract", folder)
    table = _table("extraction, a tiny network", "images", "time", "memory")
    for size, used in found.items():
        table.add_row(f"{size:,}", f"{used.seconds:.2f} s", f"{used.own:.0f} MB")
    _print(table, {"extraction": {size: used.seconds for size, used in found.items()}})


def classes(batch: int) -> None:
    """Forward and backward of every loss on a large batch of many classes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    table = _table(
        f"{batch} x {MANY_CLASSES}, one thread", "loss", "time", "/ floor", "largest tensor", "grad"
    )
    try:
        forms = gradients(batch, MANY_CLASSES)
        floor = min(_timed(forms["floor"])[0] for _ in range(2))
        for name, form in forms.items():
            seconds, finite = _timed(form)
            with Largest() as largest:
                form()
            table.add_row(
                name,
                f"{1e3 * seconds:.0f} ms",
                f"{seconds / floor:.1f}",
                judged(
                    "scale",
                    f"largest tensor of {name}",
                    largest.numbers / batch**2,
                    max(4.0, 2 * MANY_CLASSES / batch),
                    "batch^2",
                ),
                "finite" if finite else "[red]not finite[/]",
            )
    finally:
        torch.set_num_threads(threads)
    Console(width=120).print(table)


class Largest(TorchDispatchMode):
    """Notes how many numbers the largest tensor has that any operation makes."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for each in made if isinstance(made, tuple | list) else (made,):
            if isinstance(each, Tensor):
                self.numbers = max(self.numbers, each.numel())
        return made


def gradients(batch: int, classes: int) -> dict[str, Callable[[], tuple[Tensor, ...]]]:
    """By name, what computes the gradients of a loss. The floor is a softmax and P P^T."""
    generator = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, requires_grad=True)

    logits, others = drawn(batch, classes), drawn(batch, classes)
    source, target = drawn(batch, FEATURES), drawn(batch, FEATURES)
    labels = torch.randint(classes // 2, (batch,), generator=generator)
    prior = torch.full((classes,), 1 / classes)

    def floor(z: Tensor) -> Tensor:
        probs = z.softmax(1)
        return (probs @ probs.mT).sum()

    of_logits: dict[str, Callable[[Tensor], Tensor]] = {
        "floor": floor,
        "max_square": losses.max_square,
        "iw_max_square": losses.iw_max_square,
        "cwsm": losses.cwsm,
        "nsm": losses.nsm,
        "nsm, a prior": lambda z: losses.nsm(z, prior=prior),
        "nsm r=1": lambda z: losses.nsm(z, r=1.0),
        "nsm r=0.1": lambda z: losses.nsm(z, r=0.1),
        "bnm": losses.bnm,
        "fbnm": losses.fbnm,
        "entropy": losses.entropy,
        "information_maximization": losses.information_maximization,
        "mcc": losses.mcc,
        "class_balance": alignment.class_balance,
    }
    made: dict[str, Callable[[], tuple[Tensor, ...]]] = {
        name: functools.partial(_gradients, form, (logits,)) for name, form in of_logits.items()
    }
    many: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
        "mmd": (alignment.mmd, (source, target)),
        "joint_mmd": (alignment.joint_mmd, (source, target, logits, others)),
        "classifier_discrepancy": (alignment.classifier_discrepancy, (logits, others)),
        "margin_disparity": (
            lambda one, other: alignment.margin_disparity(logits, one, logits, other),
            (others, logits),
        ),
        "symmetric_classifier_loss": (
            lambda one, other: alignment.symmetric_classifier_loss(one, labels, other),
            (logits, others),
        ),
        "symmetric_feature_loss": (
            lambda one, other: alignment.symmetric_feature_loss(one, labels, other),
            (logits, others),
        ),
        "stepwise_norm": (alignment.stepwise_norm, (target,)),
        "hard_norm": (alignment.hard_norm, (target,)),
    }
    return made | {name: functools.partial(_gradients, *pair) for name, pair in many.items()}


def _gradients(form: Callable[..., Tensor], inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return torch.autograd.grad(form(*inputs), inputs)


def _timed(form: Callable[[], tuple[Tensor, ...]]) -> tuple[float, bool]:
    start = time.process_time()
    gradients = form()
    seconds = time.process_time() - start
    return seconds, all(bool(each.isfinite().all()) for each in gradients)


def _make_files(folder: Path, count: int) -> None:
    """Two domains of class folders; the files are links to a few tiny photographs."""
    from PIL import Image

    generator = np.random.default_rng(0)
    originals = [folder / f"{number}.jpg" for number in range(8)]
    for file in originals:
        pixels = generator.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((64, 64)).save(file)
    for domain in ("photo", "sketch"):
        places = [folder / "data" / domain / f"class_{label:03d}" for label in range(CLASSES)]
        for place in places:
            place.mkdir(parents=True)
        for number in range(count // 2):
            # A file system allows tens of thousands of links to one file.
            os.link(originals[number % 8], places[number % CLASSES] / f"image_{number:06d}.jpg")


def _make_photographs(folder: Path, count: int) -> None:
    """One domain of small images, each another one: equal ones would be computed once."""
    from PIL import Image

    generator = np.random.default_rng(0)
    place = folder / "photo" / "all"
    place.mkdir(parents=True)
    for number in range(count):
        pixels = generator.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((64, 64)).save(place / f"{number:06d}.jpg")


def _make_rows(folder: Path, count: int) -> Path:
    """A feature file as `equida features` writes it; blocks of rows repeat, so that it is quick."""
    file, names = folder / "features.safetensors", [f"class {n}" for n in range(CLASSES)]
    block = np.random.default_rng(0).normal(size=(1000, WIDTH)).astype(np.float32)
    labels, owners = np.arange(count) % CLASSES, np.arange(count) * 2 // count
    described = {"domains": ["one", "two"], "classes": names}
    size, end = count * WIDTH * 4, 16 * count
    header = {
        "__metadata__": {"equida": json.dumps(described)},
        "labels": {"dtype": "I64", "shape": [count], "data_offsets": [0, 8 * count]},
        "domains": {"dtype": "I64", "shape": [count], "data_offsets": [8 * count, end]},
        "features": {"dtype": "F32", "shape": [count, WIDTH], "data_offsets": [end, end + size]},
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with file.open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        stream.write(labels.astype(np.int64).tobytes() + owners.astype(np.int64).tobytes())
        for start in range(0, count, len(block)):
            stream.write(block[: count - start].tobytes())
    return file


def _first_runs(folder: Path) -> Path:
    """Real runs of the eleven systems on six tasks, with one seed and few steps."""
    generator, data_set = np.random.default_rng(0), BENCHMARKS["office31"]
    arrays: dict[str, Any] = {}
    centres = generator.normal(size=(len(data_set.classes), 64))
    for name, count in (("amazon", 2817), ("dslr", 498), ("webcam", 795)):
        labels = np.arange(count) % len(centres)
        values = centres[labels] + 2.0 * generator.normal(size=(count, 64))
        arrays |= {f"{name}_x": values.astype(np.float32), f"{name}_y": labels}
    np.savez(folder / "features.npz", **arrays, classes=np.array(data_set.classes))
    out = folder / "first"
    command = [sys.executable, "-m", "equida", *_bench(folder, out, 1), "--jobs", "1"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return out


def _bench(folder: Path, out: Path, seeds: int) -> list[str]:
    words = ["bench", "office31", "--data", str(folder / "features.npz"), "--seeds", str(seeds)]
    return [*words, "--iterations", "40", "--quiet", "--out", str(out)]


def _copy_runs(folder: Path, first: Path, seeds: int) -> Path:
    """The runs again as those of other seeds, with logs as long as those of 1000 steps."""
    stored = {}
    for path in first.glob("*/config.json"):
        config = RunConfig.from_json(json.loads(path.read_text()))
        assert config.task is not None
        stored[config.method, f"{config.task.source}2{config.task.target}"] = path.parent, config
    one = next(iter(stored.values()))[1]
    grid = Grid(
        "office31",
        tuple(Variant(method) for method in chosen_methods("all")),
        BENCHMARKS["office31"].tasks,
        tuple(range(seeds)),
        "features",
        {"iterations": 40},
        str(folder / "features.npz"),
        data_sha256=one.data_sha256,
    )
    out = folder / f"{seeds} seeds"
    for planned in plan(grid, out):
        origin, _ = stored[planned.variant.method, planned.task]
        planned.folder.mkdir(parents=True)
        for name in ("config.json", "result.json"):
            values = json.loads((origin / name).read_text()) | {"seed": planned.seed}
            (planned.folder / name).write_text(json.dumps(values, indent=1) + "\n")
        lines = list(map(json.loads, (origin / "log.jsonl").read_text().splitlines()))
        terms, evaluation = lines[0], lines[-1]
        log = [terms | {"step": 50 * n} for n in range(1, 21)]
        log += [evaluation | {"step": 200 * n} for n in range(1, 6)]
        (planned.folder / "log.jsonl").write_text("".join(json.dumps(x) + "\n" for x in log))
        for name in ("model.safetensors", "predictions.safetensors"):
            os.link(origin / name, planned.folder / name)
    return out


def do_scandir(folder: str) -> dict[str, Any]:
    """The least that any planning does: list every folder and keep the paths."""
    paths: list[str] = []
    waiting = [folder]
    while waiting:
        with os.scandir(waiting.pop()) as found:
            for entry in found:
                (waiting if entry.is_dir() else paths).append(entry.path)
    return {"files": len(paths)}


def do_plan(folder: str) -> dict[str, Any]:
    """What `equida adapt` does with two folders before it trains."""
    root = f"{folder}/data"
    with _counted(root) as (opens, lists):
        opened = open_task(DataSpec(f"{root}/photo", f"{root}/sketch"))
        assert opened.digest
    return {"opens": max(opens.values()), "lists": max(lists.values())}


def do_verb(verb: str, folder: str, copies: str) -> dict[str, Any]:
    """`bench` with nothing left to do, `report` or `paper`."""
    from equida.cli import main

    place, out = Path(copies), Path(folder) / f"out-{verb}"
    seeds = int(place.name.split()[0])
    words = {
        "bench": _bench(Path(folder), place, seeds),
        "report": ["report", copies, "--out", str(out), "--maps", "0"],
        "paper": ["paper", copies, "--out", str(out)],
    }[verb]
    nowhere = contextlib.redirect_stdout(io.StringIO())
    with _counted(copies) as (opens, _), nowhere:
        assert main(words) == 0
    written = list(place.glob("table.*")) if verb == "bench" else [out, *out.rglob("*")]
    stored = {path: n for path, n in opens.items() if Path(path).parent.parent == place}
    size = sum(path.stat().st_size for path in written if path.is_file())
    return {"opens": max(stored.values()), "bytes": size}


def do_steps(file: str, folder: str) -> dict[str, Any]:
    """Training steps alone."""
    torch.set_num_threads(1)
    task = open_task(DataSpec(f"{file}:one", f"{file}:two")).task
    stamps: list[float] = []

    class Clock:
        def logged(self, step: int, terms: Mapping[str, float]) -> None:
            stamps.append(time.process_time())

        def evaluated(self, step: int, figures: Mapping[str, float]) -> None:
            """Evaluations come after the last step."""

    recipe = Recipe(iterations=STEPS, evaluate_every=STEPS, log_every=STEPS // 6)
    train(RunConfig("nsm", recipe), task, observers=(Clock(),))
    # The last stamp comes after the evaluation, and the first after pages were read for once.
    return {"step": (stamps[-2] - stamps[0]) / (recipe.log_every * (len(stamps) - 2))}


def do_adapt(file: str, folder: str) -> dict[str, Any]:
    """A whole `equida adapt`."""
    from equida.cli import main

    words = ["adapt", "-s", f"{file}:one", "-t", f"{file}:two", "--out", f"{folder}/run"]
    assert main([*words, "--iterations", str(STEPS), "--threads", "1", "--quiet"]) == 0
    return {}


def do_extract(folder: str) -> dict[str, Any]:
    """Features of every image."""
    from equida.data import image_folder
    from equida.data.feature_cache import ExtractionOptions
    from equida.models.backbone import load_backbone
    from equida.models.extractor import FeatureExtractor, require_images

    weights = Path(folder) / "weights.pth"
    torch.save(load_backbone("test_resnet", pretrained=False).module.state_dict(), weights)
    domains = [require_images(image_folder(f"{folder}/photo"))]

    class Silent:
        def start(self, label: str, total: int) -> None:
            """No progress is shown."""

        def advance(self, count: int) -> None:
            """No progress is shown."""

    extractor = FeatureExtractor("test_resnet", weights, lambda text: None)
    extractor.extract(domains, Path(folder) / "out.safetensors", ExtractionOptions(), Silent())
    return {}


@contextmanager
def _counted(root: str) -> Iterator[tuple[Counter[str], Counter[str]]]:
    """How often each file below a folder is opened, and each folder listed."""
    import safetensors

    opens: Counter[str] = Counter()
    lists: Counter[str] = Counter()

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        counter = {"open": opens, "os.scandir": lists}.get(event)
        if counter is not None and isinstance(arguments[0], str | os.PathLike):
            path = os.fspath(arguments[0])
            if str(path).startswith(root):
                counter[str(path)] += 1

    sys.addaudithook(note)
    opening = safetensors.safe_open

    def safe_open(path: Any, *arguments: Any, **options: Any) -> Any:
        note("open", (path,))  # it is compiled code, which the hook does not see
        return opening(path, *arguments, **options)

    with mock.patch.object(safetensors, "safe_open", safe_open):
        yield opens, lists


JOBS: dict[str, Callable[..., dict[str, Any]]] = {
    "scandir": do_scandir,
    "plan": do_plan,
    "verb": do_verb,
    "steps": do_steps,
    "adapt": do_adapt,
    "extract": do_extract,
}


def _measured(job: str, *arguments: str) -> Measured:
    """What a job uses in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scale", job, *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def child(job: str, *arguments: str) -> None:
    """Do a job and print what it used."""
    before = _own_memory()
    most, ended = [before], threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            most[0] = max(most[0], _own_memory())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    start = time.process_time()
    facts = JOBS[job](*arguments)
    seconds = time.process_time() - start
    own = max(most[0], _own_memory())
    ended.set()
    watcher.join()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(json.dumps({"seconds": seconds, "peak": peak, "own": own - before, "facts": facts}))


def _own_memory() -> float:
    """The memory of this process in MB, without pages of files."""
    status = Path("/proc/self/status").read_text()
    return next(float(x.split()[1]) / 1e3 for x in status.splitlines() if x.startswith("RssAnon"))


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    return table


def _print(table: Table, slopes: Mapping[str, Mapping[int, float]]) -> None:
    console = Console(width=140)
    console.print(table)
    for name, times in slopes.items():
        console.print(
            f"{name}: slope {judged('scale', f'{name}: slope', slope(times), MOST_SLOPE)}"
        )


def slope(times: Mapping[int, float]) -> float:
    """The exponent by which times grow with sizes.

    Of three sizes, the first is what a start costs, and the growth beyond it counts.

    >>> round(slope({10: 2.0, 100: 200.0}), 3), round(slope({0: 5.0, 10: 6.0, 100: 15.0}), 3)
    (2.0, 1.0)
    """
    sizes = sorted(times)
    first = sizes.pop(0) if len(sizes) > 2 else None
    origin, start = (0, 0.0) if first is None else (first, times[first])
    small, large = sizes
    growth = max(times[large] - start, 1e-9) / max(times[small] - start, 1e-9)
    return math.log(growth) / math.log((large - origin) / (small - origin))


if __name__ == "__main__":
    child(*sys.argv[1:])
