"""Attacks: damaged, strange and hostile input, signals and kills, tried in great number.

A module of this folder holds one family or several. A family is a function that tries one case and
returns how it went:

    @family("flags", quick=20, long=500)
    def flags(case: Case) -> Outcome:
        value = case.random.choice(["nan", "-1", "1e400", ""])
        return case.call("adapt", "-s", case.data / "toy.npz:a", "--seed", value, codes=(2,))

Cases differ by their number alone: everything random comes from `case.random`, so that
`python -m tests.attack flags --case 17` repeats one. `make test` tries the first few of each family
and `make attack` many.
"""

import contextlib
import faulthandler
import functools
import importlib
import io
import os
import pkgutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

import numpy as np
import pytest
from tests.processes import Ended, TooLong, equida, run
from tests.small_data import BACKBONE, write_blobs, write_pictures

Verdict = Literal["clean", "traceback", "hang", "crash", "wrong"]
VERDICTS: tuple[Verdict, ...] = ("clean", "traceback", "hang", "crash", "wrong")
"""Crash: the interpreter itself ended. Wrong: another exit code, or not one line."""

CASE_SECONDS = 60.0
"""How long a case may take, unless it says otherwise."""

NOISE = ("Traceback (most recent call last)", "Warning:", "Exception ignored")


@dataclass(frozen=True)
class Outcome:
    """How a case went; `detail` says what was tried and what came of it."""

    verdict: Verdict
    detail: str = ""

    @property
    def clean(self) -> bool:
        return self.verdict == "clean"


@dataclass(frozen=True)
class Case:
    """One case of a family."""

    number: int
    random: Random
    """Everything random comes from here."""
    folder: Path
    """Empty, and removed afterwards."""

    @property
    def data(self) -> Path:
        """Small data that must not be changed: see `small_data`."""
        return small_data()

    def command(
        self,
        *arguments: object,
        codes: Collection[int] = (0, 2),
        limit: float = CASE_SECONDS,
        env: Mapping[str, str] | None = None,
    ) -> Outcome:
        """Run `equida ARGUMENTS` in a process, in the case's folder, and judge how it ended."""
        command = equida(*arguments)
        try:
            ended = run(command, limit=limit, cwd=self.folder, env=env, code=None)
        except TooLong as hang:
            return Outcome("hang", str(hang))
        return judge(ended, codes, arguments)

    def call(
        self,
        *arguments: object,
        codes: Collection[int] = (0, 2),
        limit: float = CASE_SECONDS,
    ) -> Outcome:
        """The same in this process, which is a hundred times as fast."""
        from equida.cli import main

        return self.attempt(lambda: main([*map(str, arguments)]), arguments, codes, limit)

    def attempt(
        self,
        action: Callable[[], int | None],
        what: object,
        codes: Collection[int] = (0, 2),
        limit: float = CASE_SECONDS,
    ) -> Outcome:
        """Call a function that returns an exit code, or None for 0, and judge how it ended.

        An InputError counts as code 2, as on the command line.
        """
        from equida.errors import InputError

        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                with time_limit(limit), contextlib.chdir(self.folder):
                    code = action() or 0
            except InputError as error:
                code, _ = 2, err.write(f"equida: {error}\n")
            except TooLong as hang:
                return Outcome("hang", f"{what}\n{hang}")
            except pytest.skip.Exception:  # with --fast, where it would start a process
                raise
            except BaseException:
                return Outcome("traceback", f"{what}\n{traceback.format_exc()}")
        return judge(Ended(code, out.getvalue(), err.getvalue()), codes, what)


Family = Callable[[Case], Outcome]


@dataclass(frozen=True)
class Listed:
    """A family and how many of its cases are tried."""

    attack: Family
    quick: int
    long: int


FAMILIES: dict[str, Listed] = {}


def family(name: str, *, quick: int, long: int) -> Callable[[Family], Family]:
    """Register a family.

    Args:
        name: short, in lower case.
        quick: how many cases `make test` tries; together they must take a few seconds.
        long: how many cases `make attack` tries.
    """

    def register(attack: Family) -> Family:
        FAMILIES[name] = Listed(attack, quick, long)
        return attack

    return register


def load_families() -> Mapping[str, Listed]:
    """Every family of this folder, by name."""
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith(("test_", "__")):
            importlib.import_module(f"{__name__}.{module.name}")
    return FAMILIES


def attack(name: str, number: int) -> Outcome:
    """Try case `number` of a family."""
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        case = Case(number, Random(f"{name} {number}"), Path(folder))
        return FAMILIES[name].attack(case)


def judge(ended: Ended, codes: Collection[int], what: object) -> Outcome:
    """How a command ended: one of `codes`, no traceback, and one line if it did not succeed."""
    detail = f"{what}\nexit code {ended.code}\n{ended.out[-2000:]}{ended.err[-4000:]}"
    said = ended.err.splitlines()
    complaints = [line for line in said if line.startswith("equida: ")]
    if "Fatal Python error" in ended.err or (ended.code < 0 and ended.code not in codes):
        return Outcome("crash", detail)
    if any(noise in line for noise in NOISE for line in (*said, *ended.out.splitlines())):
        return Outcome("traceback", detail)
    # Unreadable files are listed below the line, each on one of its own.
    below = said[said.index(complaints[0]) + 1 :] if complaints else []
    one_line = len(complaints) == 1 and all(line.startswith("  ") for line in below)
    # With code 1 the result itself says what failed.
    if ended.code not in codes or (ended.code > 1 and not one_line):
        return Outcome("wrong", detail)
    return Outcome("clean", detail)


def worst(outcomes: Sequence[Outcome]) -> Outcome:
    """The first outcome that is not clean, or the last one."""
    return next((outcome for outcome in outcomes if not outcome.clean), outcomes[-1])


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TooLong in the block once so much time has gone by.

    What does not return to the interpreter cannot be interrupted: such cases need a process. Here
    they end this one, and print its stacks.
    """

    def over(number: int, frame: object) -> None:
        raise TooLong(f"waited for {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(seconds + 60, exit=True, file=2)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@functools.cache
def small_data() -> Path:
    """A folder that is made once in a process, and removed at its end.

    - toy.npz: a feature file with the domains a and b, four classes, 60 rows of eight numbers each.
    - office.npz: the same for `bench office31 --data`.
    - photos, drawings: folders of three class folders with four small images each.
    - tiny_backbone.py: a network, `--backbone tiny_backbone:net`; it is on the path.
    """
    from equida.data.benchmarks import BENCHMARKS

    holder = tempfile.TemporaryDirectory(prefix="attack-data-")
    _HOLDERS.append(holder)
    root, random = Path(holder.name), np.random.default_rng(0)
    write_blobs(root / "toy.npz")
    classes = BENCHMARKS["office31"].classes
    rows = {"classes": np.array(classes)}
    for domain in ("amazon", "dslr", "webcam"):
        rows[f"{domain}_x"] = random.normal(size=(2 * len(classes), 8)).astype("f4")
        rows[f"{domain}_y"] = np.repeat(np.arange(len(classes)), 2)
    np.savez(root / "office.npz", **rows)  # type: ignore[arg-type]
    write_pictures(root, ("photos", "drawings"), ("red", "green", "blue"))
    (root / "tiny_backbone.py").write_text(BACKBONE)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return root


_HOLDERS: list[tempfile.TemporaryDirectory[str]] = []


def short_run(out: Path) -> list[str]:
    """The arguments of `adapt` for a run on rows that takes a fraction of a second."""
    toy = small_data() / "toy.npz"
    flags = ["adapt", "-s", f"{toy}:a", "-t", f"{toy}:b", "--iterations", "4", "--out", str(out)]
    return [*flags, "--evaluate-every", "2", "--batch-size", "8", "--bottleneck", "4", "--quiet"]


def is_root() -> bool:
    """Whether permissions mean nothing to this process."""
    return hasattr(os, "geteuid") and os.geteuid() == 0
