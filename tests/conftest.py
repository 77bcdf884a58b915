"""What every test shares: one thread, and the shared reference data where it is present."""

import os

# Before numpy is imported: several processes of tests with threads for each core wait for each
# other, and a test that takes a second takes ten.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Threads of torch in processes that tests start wait without a core that others need.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# Where a stream stands in for a terminal, it is one that can show a bar, whatever this one can.
os.environ["TERM"] = "xterm-256color"

import contextlib
import faulthandler
import multiprocessing.process
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import settings
from tests.processes import abort, descendants
from tests.small_data import BACKBONE

from equida.data.benchmarks import BENCHMARKS

SHARED = Path(__file__).resolve().parents[2] / "shared"


TEST_SECONDS = float(os.environ.get("EQUIDA_TEST_SECONDS", "600"))
"""How long any test may take, and the fixtures that are set up or torn down with it; those that
start processes by `tests.processes` end earlier."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow(reason): takes over a second; --fast leaves it out")
    if config.getoption("--fast"):
        settings.register_profile("fast", max_examples=20)
        settings.load_profile("fast")
    # A process that a test has started, and that takes too long, prints the stacks of its threads.
    os.environ["PYTHONFAULTHANDLER"] = "1"
    # Tiny tensors are slower with many threads, and the suite shares the machine.
    torch.set_num_threads(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fast",
        action="store_true",
        help="skip every test that starts a process or a browser, and those that are marked slow;"
        " properties are tried on fewer examples",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--fast"):
        for item in items:
            if marker := item.get_closest_marker("slow"):
                reason = f"slow, which --fast leaves out: {marker.kwargs['reason']}"
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True, scope="session")
def _no_processes(request: pytest.FixtureRequest) -> Iterator[None]:
    """With --fast, whoever starts a process is skipped at that moment."""

    def skip(*arguments: Any, **named: Any) -> None:
        pytest.skip("starts a process, which --fast leaves out")

    with pytest.MonkeyPatch.context() as patch:
        if request.config.getoption("--fast"):
            patch.setattr(subprocess.Popen, "__init__", skip)
            patch.setattr(multiprocessing.process.BaseProcess, "start", skip)
        yield


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Features that commands share: each test has a place of its own, and never the user's."""
    monkeypatch.setenv("EQUIDA_CACHE", str(tmp_path / "equida_cache"))


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which is the test's own and has the module tiny_backbone with net()."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny_backbone.py").write_text(BACKBONE)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@contextlib.contextmanager
def time_limit(seconds: float, grace: float = 60.0) -> Iterator[None]:
    """What takes too long inside ends, and shows what its processes and its threads were doing."""

    def over() -> None:
        abort(descendants(os.getpid()))
        faulthandler.dump_traceback_later(grace, exit=True, file=2)

    timer = threading.Timer(seconds, over)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        faulthandler.cancel_dump_traceback_later()


# Around each part of a test rather than in a fixture: those of a module and of the session are set
# up before the fixtures of a test, and torn down after them.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    with time_limit(TEST_SECONDS):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    with time_limit(TEST_SECONDS):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    with time_limit(TEST_SECONDS):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what a process has printed that did not end as a test wants it to."""
    report = yield
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, subprocess.CalledProcessError | subprocess.TimeoutExpired):
        report.sections.append(("what the process printed", f"{error.stdout!r}\n{error.stderr!r}"))
    return report


@pytest.fixture(scope="session")
def office31() -> Path:
    """The folder of Office-31; tests that need it skip where it is absent."""
    folder = SHARED / "data" / "office31"
    if not folder.is_dir():
        pytest.skip(f"needs the Office-31 images in {folder}")
    return folder


@pytest.fixture(scope="session")
def toy_office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A feature file that the benchmark office31 loads: all 31 classes, four rows each, clusters
    that move between domains."""
    file = tmp_path_factory.mktemp("toy") / "office.npz"
    generator = np.random.default_rng(0)
    classes, width = BENCHMARKS["office31"].classes, 24
    centres = 3.0 * generator.standard_normal((len(classes), width))
    labels = np.repeat(np.arange(len(classes)), 4)
    arrays = {"classes": np.array(classes)}
    for domain in ("amazon", "dslr", "webcam"):
        shift = generator.standard_normal(width)
        noise = generator.standard_normal((len(labels), width))
        arrays[f"{domain}_x"] = (centres[labels] + shift + noise).astype(np.float32)
        arrays[f"{domain}_y"] = labels
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file


@pytest.fixture
def runs_of_version_0(tmp_path: Path) -> Path:
    """Runs that were made before files had a schema, and their data, as if made in this folder."""
    root = tmp_path / "version_0"
    with tarfile.open(Path(__file__).parent / "data" / "runs_of_version_0.tar.xz") as archive:
        # Python 3.11.4 has `filter=`; where it is missing, this changes nothing.
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)
        archive.extractall(root)
    (root / "runs").mkdir()
    for folder in [each for each in root.iterdir() if each.is_dir() and each.name != "runs"]:
        shutil.move(folder, root / "runs")
    for file in root.rglob("config.json"):
        file.write_text(file.read_text().replace("/srv/equida", str(root)))
    for file in root.rglob("checkpoint.pt"):
        state = torch.load(file, weights_only=True)
        state["config"] = state["config"].replace("/srv/equida", str(root))
        torch.save(state, file)
    return root
