"""A disk that is full, a file that may not grow, a folder that cannot be written: one line."""

import shlex
import sys

from tests.attack import Case, Outcome, family, judge, short_run, worst
from tests.attack.run_folders import bench, runs
from tests.processes import TooLong, equida, run


@family("disk", quick=1, long=80)
def disk(case: Case) -> Outcome:
    out = case.folder / "out"
    tiny = ("--backbone", "tiny_backbone:net")
    commands: dict[str, tuple[list[object], int]] = {
        "adapt": ([*short_run(out)], 8),
        "features": (["features", case.data / "photos", *tiny, "--out", out / "f.safetensors"], 4),
        "report": (["report", runs(), "--out", out / "page.html", "--maps", 0], 4000),
        "export": (["export", runs() / "alone", "--no-onnx", "--out", out], 8),
        "bench": ([*bench(out), "--methods", "nsm,bnm"], 8),
    }
    name = [*commands][case.number % len(commands)]
    command, kilobytes = commands[name]
    out.mkdir()
    limit = case.random.randrange(1, kilobytes + 1)
    words = shlex.join(equida(*command))
    # What is imported must not be compiled anew into files that may not grow.
    shell = f"ulimit -f {2 * limit}; exec {words}"
    what = f"{name}: files of at most {limit} kB"
    env = {"PYTHONDONTWRITEBYTECODE": "1"}
    try:
        ended = run(["sh", "-c", shell], cwd=case.folder, env=env, code=None)
    except TooLong as hang:
        return Outcome("hang", f"{what}\n{hang}")
    codes = (0, 1, 2) if name == "bench" else (0, 2)
    outcome = judge(ended, codes, what)
    drafts = [str(file) for file in out.rglob("*.tmp")]
    if drafts:
        outcome = Outcome("wrong", f"{outcome.detail}\nleft: {drafts}")
    return worst([outcome, case.command(*command, codes=(0,))])


@family("no folder", quick=4, long=60)
def no_folder(case: Case) -> Outcome:
    """Places that nothing can be written into."""
    (case.folder / "file").write_text("a file")
    places = ["/proc/none/out", case.folder / "file" / "out", "/dev/null/out",
              case.folder / ("x" * 300), case.folder / "\udcff" / ("y" * 300)]  # fmt: skip
    place = case.random.choice(places)
    tiny = ("--backbone", "tiny_backbone:net")
    commands: list[list[object]] = [
        [*short_run(case.folder / "out")[:-5], "--out", place],
        ["features", case.data / "photos", *tiny, "--out", f"{place}/f.safetensors"],
        ["report", runs(), "--out", f"{place}/page.html", "--maps", 0],
        ["export", runs() / "alone", "--no-onnx", "--out", place],
        ["predict", runs() / "alone", case.data / "toy.npz", "-o", f"{place}/p.csv"],
        ["paper", runs(), "--out", place],
        [*bench(case.folder)[:-2], "--out", place, "--methods", "nsm"],
    ]
    return case.call(*case.random.choice(commands), codes=(2,))


@family("full output", quick=1, long=8)
def full_output(case: Case) -> Outcome:
    """Standard output on a disk that is full."""
    if sys.platform != "linux":
        return Outcome("clean", "there is no /dev/full here")
    commands: list[list[object]] = [
        ["list", "methods"], ["predict", runs() / "alone", case.data / "toy.npz"], ["--help"],
        ["doctor"],
    ]  # fmt: skip
    words = shlex.join(equida(*commands[case.number % len(commands)]))
    ended = run(["sh", "-c", f"{words} > /dev/full"], code=None)
    return judge(ended, (2,), words)
