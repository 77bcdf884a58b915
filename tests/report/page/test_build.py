import builtins
import io
import json
import re
import sys
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors

from equida.errors import InputError
from equida.evaluation.figures import Figure
from equida.report.page import build, detail, write_page
from equida.runs.read import read_predictions, read_runs
from equida.runs.variant import Variant
from equida.training.folder import RunFolder

Writer = Callable[..., Path]
HOSTILE = ("</script><img src=x onerror=alert(1)>", "\u2028<b>&amp;", "plain")


def page(runs: Path, **options: int) -> str:
    out = runs.parent / "report.html"
    write_page(runs, out, maps=options.get("maps", 0))
    return out.read_text("utf-8")


def embedded(text: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found
    data: dict[str, object] = json.loads(found[1])
    return data


def test_the_page_is_the_same_for_the_same_runs(write: Writer, runs: Path) -> None:
    for method in ("source_only", "nsm"):
        write(method=method)
    assert page(runs, maps=1) == page(runs, maps=1)


def test_the_page_names_nothing_to_load(write: Writer, runs: Path) -> None:
    write()
    own = re.sub(r"<script>.*?</script>", "", page(runs), flags=re.S)
    assert not re.search(r"(?:src|href|url)\s*[=(]\s*[\"']?(?!data:|#)\w", own)


def test_hostile_names_are_text(write: Writer, runs: Path) -> None:
    write(classes=HOSTILE, prefix="<svg onload=alert(2)>/", source="<i>", benchmark=None)
    failed = write(seed=1)
    (failed / "result.json").unlink()
    RunFolder(failed).write_json("failed.json", {"reason": "<script>alert(3)</script>"})
    text = page(runs, maps=1)
    own = re.sub(r"<script>.*?</script>", "", text, flags=re.S)
    for bad in ("<img src=x", "<svg onload", "<i>", "<script>alert(3)", "\u2028"):
        assert bad not in own
    runs_on_page = embedded(text)["runs"]
    assert isinstance(runs_on_page, list)
    assert runs_on_page[0]["classes"] == list(HOSTILE)
    assert "&lt;script&gt;alert(3)" in own


def test_names_that_are_no_text_do_not_stop_the_page(write: Writer, runs: Path) -> None:
    write(prefix="caf\udce9 ")
    assert "1 finished run" in page(runs)


def test_what_is_left_out_is_said(write: Writer, runs: Path) -> None:
    for seed in (0, 1):
        write(seed=seed)
    assert "1 of 2 runs has a map" in page(runs, maps=1)
    assert "0 of 2 runs have a map" in page(runs, maps=0)


def test_many_runs_are_listed_folded_up(
    write: Writer, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, folded = '<details class="group" open>', '<details class="group">'
    write()
    text = page(runs)
    assert opened in text
    assert folded not in text
    monkeypatch.setattr(build, "FEW", 0)
    text = page(runs)
    assert opened not in text
    assert folded in text


def test_failed_and_unfinished_runs_are_listed(write: Writer, runs: Path) -> None:
    folder = write()
    (folder / "result.json").unlink()
    text = page(runs)
    assert "0 finished runs" in text
    assert "unfinished: start it again, and it resumes" in text


def test_a_folder_without_runs_says_what_to_do(runs: Path) -> None:
    with pytest.raises(InputError, match="holds no runs; make some with equida bench"):
        page(runs)
    with pytest.raises(InputError, match="is not a folder"):
        write_page(runs / "gone", runs / "report.html")


@pytest.mark.parametrize("package", ["jinja2", "plotly", "openTSNE"])
def test_a_missing_package_names_the_extra(
    write: Writer, runs: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    write()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=rf"{package}: pip install 'equida\[report\]'"):
        page(runs, maps=1)


def test_a_page_that_cannot_be_written_says_so(write: Writer, runs: Path) -> None:
    write()
    with pytest.raises(InputError, match=r"cannot write .*choose another folder"):
        write_page(runs, runs / "no" / "folder.html", maps=0)


def test_runs_that_were_read_and_the_folder_of_one_run_make_a_page(
    write: Writer, runs: Path
) -> None:
    one, _ = write(seed=0), write(seed=1)
    out = runs.parent / "report.html"
    assert len(write_page(read_runs(runs), out, maps=0).finished) == 2
    assert "<h1>runs</h1>" in out.read_text("utf-8")
    assert len(write_page(one, out, maps=0).finished) == 1
    assert f"<h1>{one.name}</h1>" in out.read_text("utf-8")
    assert len(write_page(read_runs(one), out, maps=0).finished) == 1
    with pytest.raises(InputError, match="holds no runs"):
        write_page([], out)


def test_a_method_that_is_not_registered_here_is_shown(write: Writer, runs: Path) -> None:
    write(method="theirs", overrides=(("strength", 2.0),))
    assert "equida adapt cannot make this run here: method &#39;theirs&#39;" in page(runs)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[Path]:
    """How often each file was opened since."""
    counts: Counter[Path] = Counter()

    def counting(original: Callable[..., Any]) -> Callable[..., Any]:
        def counted(file: Any, *arguments: Any, **more: Any) -> Any:
            result = original(file, *arguments, **more)
            if isinstance(file, str | Path):
                counts[Path(file)] += 1
            return result

        return counted

    monkeypatch.setattr(builtins, "open", counting(builtins.open))
    monkeypatch.setattr(io, "open", counting(io.open))
    monkeypatch.setattr(safetensors, "safe_open", counting(safetensors.safe_open))
    return counts


def test_each_file_of_a_run_is_read_once(write: Writer, runs: Path, opened: Counter[Path]) -> None:
    for method in ("source_only", "bnm", "nsm"):
        for seed in range(10):
            write(method=method, seed=seed)
    opened.clear()
    page(runs, maps=1)
    below = {file: count for file, count in opened.items() if runs in file.parents}
    names = Counter(file.name for file in below)
    read = ("config.json", "result.json", "log.jsonl", "predictions.safetensors")
    assert {name: names[name] for name in read} == dict.fromkeys(read, 30)
    assert set(below.values()) == {1}


def test_a_new_figure_is_shown_everywhere(write: Writer, runs: Path, new_figure: Figure) -> None:
    write(extra_figures=(("spread_share", 0.25),))
    write(seed=1)
    text = page(runs)
    assert re.search(r"<button type=\"button\">Spread share</button>", text)
    # Half of the seeds have it, in percent.
    assert re.search(r'<span class="value">25\.0</span><span class="spread"> \(1/2\)</span>', text)
    assert "spread share 25.00 %, step 100" in text
    assert "<dt>spread share</dt><dd>made up for a test.</dd>" in text
    assert 'id="plot-spread_share"' in text
    data: dict[str, Any] = embedded(text)
    assert "spread_share" in data["measures"]
    assert data["figures"]["spread_share"]["name"] == "spread share"
    first, second = data["runs"]
    assert first["last"]["spread_share"] == 0.25
    assert second["last"]["spread_share"] is None
    assert first["curves"]["figures"]["spread_share"] == [0.25, 0.25]


def test_the_predictions_of_one_run_at_a_time_are_in_memory(
    write: Writer, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(6):
        write(seed=seed)
    read: list[weakref.ref[Any]] = []
    alive: list[int] = []

    def reading(run: Any) -> Any:
        alive.append(sum(one() is not None for one in read))
        found = read_predictions(run)
        read.append(weakref.ref(found))
        return found

    monkeypatch.setattr(detail, "read_predictions", reading)
    found = read_runs(runs)
    write_page(found, runs.parent / "report.html", maps=0)
    # That of the run before may live until the next one is assigned.
    assert len(alive) == 6
    assert max(alive) <= 1
    assert not any({"log", "predictions"} & set(vars(run)) for run in found)


@pytest.mark.slow(reason="pages of many runs")
def test_the_work_for_a_page_grows_with_the_runs_and_not_with_their_square(
    writer: Callable[[Path], Writer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    key = Variant.key

    def counted(variant: Variant) -> tuple[Any, ...]:
        counts[-1] += 1
        return key(variant)

    monkeypatch.setattr(Variant, "key", counted)
    for size in (6, 24):
        for number in range(size):
            writer(tmp_path / str(size))(overrides=(("trade_off", 0.5 + number / 8),))
        counts.append(0)
        write_page(tmp_path / str(size), tmp_path / f"{size}.html", maps=0)
    # Every run is a variant of its own; with all pairs it would be 16 times as much.
    assert counts[1] <= 5 * counts[0]
