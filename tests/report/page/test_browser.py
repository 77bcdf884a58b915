"""The page in a real browser: it loads alone, and sorting, hovering and switching work."""

import contextlib
import itertools
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.processes import LIMIT

from equida.evaluation.figures import Figure
from equida.report.page import write_page
from equida.training.folder import RunFolder

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOSTILE = (
    "</script><img src=x onerror=document.title='owned'>",
    "<b>bold</b> & \"quotes'",
    "line\u2028break $x$ %{y}",
    "ünïcode ☃ 漢字",
)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass
class Opened:
    """A page, and what it complained of or asked for."""

    page: "Page"
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest) -> "Iterator[Browser]":
    if request.config.getoption("--fast"):
        pytest.skip("starts a browser, which --fast leaves out")
    if CHROMIUM is None:
        pytest.skip("needs chromium: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(browser: "Browser", writer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems with two seeds on one task, hostile class names, one unfinished run."""
    runs = tmp_path_factory.mktemp("page") / "runs"
    write = writer(runs)
    for seed in (0, 1):
        write(method="source_only", seed=seed, right=30 + 3 * seed, classes=HOSTILE)
        write(method="nsm", seed=seed, right=50 + 3 * seed, classes=HOSTILE)
    write(method="bnm", source="U", target="M", labelled=False, prefix="<i>x</i> ")
    (write(method="cwsm", seed=7) / "result.json").unlink()
    out = runs.parent / "report.html"
    write_page(runs, out, maps=2)
    return out


@pytest.fixture(scope="module")
def wide(browser: "Browser", writer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six tasks of 31 classes; the first run logged one point, the second 700."""
    runs = tmp_path_factory.mktemp("wide") / "runs"
    write = writer(runs)
    classes = tuple(f"class {number}" for number in range(31))
    for source in "abcdef":
        for seed in (0, 1):
            folder = write(source=source, benchmark=None, seed=seed, classes=classes)
            if source == "a":
                (folder / "log.jsonl").write_text("")
                for step in range(1, 2 if seed == 0 else 701):
                    RunFolder(folder).append_log({"step": step, "terms": {"cross_entropy": 0.5}})
    out = runs.parent / "report.html"
    write_page(runs, out, maps=1)
    return out


def open_page(browser: "Browser", file: Path, width: int = 1280, scheme: Any = "light") -> Opened:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_default_timeout(LIMIT * 1000)  # in milliseconds
    opened = Opened(context.new_page())

    def on_request(route: Any) -> None:
        url = route.request.url
        if url.startswith(("file:", "data:")):
            route.continue_()
            return
        opened.requests.append(url)
        route.abort()

    opened.page.route("**/*", on_request)
    opened.page.on("console", lambda message: _note(opened, message))
    opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.page.goto(file.as_uri())
    opened.page.wait_for_selector("#plot-map svg.main-svg")
    return opened


def _note(opened: Opened, message: Any) -> None:
    if message.type in ("error", "warning"):
        opened.complaints.append(message.text)


STILL = """(element) => new Promise((settled) => {
  let seen = null, frames = 0;
  const look = () => {
    const { x, y, width, height } = element.getBoundingClientRect();
    const now = [x, y, width, height].join(" ");
    frames = now === seen ? frames + 1 : 0;
    seen = now;
    if (frames === 10) settled({ x: x + width / 2, y: y + height / 2 });
    else requestAnimationFrame(look);
  };
  look();
})"""


def middle(element: "Locator") -> tuple[float, float]:
    """Where an element's middle is, once the page around it has stopped moving."""
    element.scroll_into_view_if_needed()
    found = element.evaluate(STILL)
    return found["x"], found["y"]


def point_at(element: "Locator") -> str:
    """The tip that pointing at an element shows. A plot is deaf while it draws: point again."""
    page = element.page
    for _ in range(30):
        x, y = middle(element)
        page.mouse.move(x + 40, y + 40)
        page.mouse.move(x, y, steps=4)
        with contextlib.suppress(sync_api.TimeoutError):
            page.wait_for_selector("#tip:not([hidden])", timeout=1000)
            return page.locator("#tip").inner_text()
    pytest.fail("the page never showed its tip")


def names(page: "Page") -> list[str]:
    rows = "#results figure:not([hidden]) tbody tr th"
    return [text.strip() for text in page.locator(rows).all_inner_texts()]


def test_it_loads_alone_and_hostile_names_stay_text(browser: "Browser", report: Path) -> None:
    opened = open_page(browser, report)
    page = opened.page
    assert page.title() == "runs"
    assert page.locator("#mistakes b").first.inner_text().removeprefix("predicted: ") in [
        name.replace("\u2028", " ") for name in HOSTILE
    ] + list(HOSTILE)
    ticks = page.locator("#plot-sizes .yaxislayer-above text").all_text_contents()
    assert "<b>bold</b> & \"quotes'" in ticks
    assert any(tick.startswith("</script><img") for tick in ticks)
    assert page.locator("#plot-sizes b, main img[src=x], main i").count() == 0
    assert (opened.complaints, opened.requests) == ([], [])


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_nothing_is_wider_than_the_window(
    browser: "Browser", report: Path, width: int, scheme: str
) -> None:
    page = open_page(browser, report, width, scheme).page
    assert page.evaluate("document.documentElement.scrollWidth") == width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(252, 251, 248)", "dark": "rgb(20, 22, 26)"}[scheme]


def test_tables_sort_by_click_and_by_keyboard(browser: "Browser", report: Path) -> None:
    page = open_page(browser, report).page
    assert names(page) == ["Source only", "BNM", "NSM"]
    head = page.locator("#results figure:not([hidden]) th[aria-sort]").nth(1)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert names(page) == ["NSM", "Source only", "BNM"]
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    # A system without a number stays below the others, whichever way.
    assert names(page) == ["Source only", "NSM", "BNM"]


def test_hover_and_focus_show_the_seeds(browser: "Browser", report: Path) -> None:
    page = open_page(browser, report).page
    cell = page.locator("#results figure:not([hidden]) td[data-run]").first
    cell.hover()
    assert page.locator("#tip").inner_text().splitlines()[0].startswith("seed 0: 50.00 %")
    page.mouse.move(5, 5)
    assert page.locator("#tip").is_hidden()
    cell.focus()
    assert page.locator("#tip").inner_text().splitlines()[1].startswith("seed 1: 55.00 %")


def test_the_selection_switches_the_table(browser: "Browser", report: Path) -> None:
    page = open_page(browser, report).page
    page.locator("#show-selection").select_option("entropy")
    cell = page.locator("#results figure:not([hidden]) td .value").first
    # The run's first evaluation is ten points below its last.
    assert cell.inner_text() == "42.5"


def test_a_run_can_be_chosen_and_its_samples_pointed_at(browser: "Browser", report: Path) -> None:
    opened = open_page(browser, report)
    page = opened.page
    assert page.locator("#run-system option:checked").inner_text() == "NSM"
    assert point_at(page.locator("#plot-map .points path").first).startswith("row ")
    assert page.locator("#tip img").count() == 1

    page.locator("#run-seed").select_option(label="1")
    assert page.locator("#run-title").inner_text() == "NSM on M→U, seed 1"
    assert page.locator("#run-figures dd").first.inner_text() == "88.3 %"
    assert "equida report --maps N" in page.locator("#plot-map").inner_text()

    page.locator("#run-task").select_option(label="U→M")
    assert page.locator("#run-figures dd").first.inner_text() == "–"
    assert "has no labels" in page.locator("#run-note").inner_text()
    assert page.locator("#panel-confusion").is_hidden()
    assert page.locator("#panel-mistakes").is_hidden()
    assert opened.complaints == []


def test_a_point_leads_to_its_run_and_a_name_hides_a_system(
    browser: "Browser", report: Path
) -> None:
    page = open_page(browser, report).page
    points = page.locator("#plot-equity .points path")
    assert points.count() == 4
    point_at(points.first)
    page.mouse.click(*middle(points.first))
    page.wait_for_function(
        "document.querySelector('#run-system').selectedOptions[0].text === 'Source only'"
    )
    page.locator("#legend button").first.click()
    assert points.count() == 2
    assert page.locator("#legend button").first.get_attribute("aria-pressed") == "false"


def test_lines_of_training_are_means_over_seeds(browser: "Browser", report: Path) -> None:
    page = open_page(browser, report).page
    page.locator("#plot-training svg.main-svg").first.scroll_into_view_if_needed()
    drawn = "document.getElementById('plot-training').data.map((trace) => trace.y)"
    means = page.evaluate(drawn)
    page.locator("#training-lines").select_option("each")
    each = page.evaluate(drawn)
    assert (len(means), len(each)) == (2, 4)
    for number, mean in enumerate(means):
        pairs = zip(*each[2 * number : 2 * number + 2], strict=True)
        assert mean == pytest.approx([sum(pair) / 2 for pair in pairs])
    page.locator("#training-legend button").first.click()
    assert page.evaluate(drawn) == each[2:]
    assert page.locator("#plot-equity .points path").count() == 2
    focused = "document.activeElement.getAttribute('aria-pressed')"
    assert page.evaluate(focused) == "false"


def test_one_seed_has_no_mean(browser: "Browser", writer: Any, tmp_path: Path) -> None:
    writer(tmp_path / "runs")(method="nsm")
    write_page(tmp_path / "runs", tmp_path / "report.html", maps=1)
    page = open_page(browser, tmp_path / "report.html").page
    assert page.locator("#training-lines").is_hidden()
    assert "mean" not in page.locator("#training-caption").inner_text()


def test_a_new_figure_is_drawn(
    browser: "Browser", writer: Any, tmp_path: Path, new_figure: Figure
) -> None:
    writer(tmp_path / "runs")(extra_figures=((new_figure.name, 0.25),))
    write_page(tmp_path / "runs", tmp_path / "report.html", maps=1)
    opened = open_page(browser, tmp_path / "report.html")
    page = opened.page
    assert page.evaluate("document.getElementById('plot-spread_share').data[0].x") == [0.25]
    page.locator("#training-figure").select_option(label="spread share")
    drawn = "document.getElementById('plot-training').data[0].y"
    assert page.evaluate(drawn) == pytest.approx([25.0, 25.0])
    assert page.locator("#training-caption").inner_text() == "Spread share, M→U"
    assert "25.0 %" in page.locator("#run-figures").inner_text()
    assert "25.0 %" in page.locator("#run-picks tbody tr").first.inner_text()
    assert opened.complaints == []


def test_names_of_classes_do_not_cover_one_another(
    browser: "Browser", writer: Any, tmp_path: Path
) -> None:
    writer(tmp_path / "runs")(classes=tuple(f"class {number}" for number in range(12)))
    write_page(tmp_path / "runs", tmp_path / "report.html", maps=1)
    page = open_page(browser, tmp_path / "report.html").page
    labels = page.locator("#plot-confusion .xaxislayer-above text").all()
    boxes = [label.bounding_box() for label in labels]
    assert len(boxes) == 12
    for box, following in itertools.pairwise(boxes):
        assert box is not None
        assert following is not None
        assert box["x"] + box["width"] <= following["x"]


def test_paper_gets_light_plots_of_its_width(browser: "Browser", report: Path) -> None:
    page = open_page(browser, report, scheme="dark").page
    width = "document.querySelector('#plot-terms .main-svg').getBoundingClientRect().width"
    colour = "getComputedStyle(document.querySelector('.mark path')).stroke"
    before = page.evaluate(width), page.evaluate(colour)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(width) == 660
    assert page.evaluate(colour) != before[1]
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.wait_for_function(f"{width} === {before[0]}")
    assert page.evaluate(colour) == before[1]


def test_failed_and_unfinished_runs_are_there(browser: "Browser", report: Path) -> None:
    page = open_page(browser, report).page
    assert "CWSM" in page.locator("#unfinished-runs").inner_text()
    assert page.locator("#runs details.run").count() == 5


def test_the_map_enlarges_and_shows_all_again(browser: "Browser", report: Path) -> None:
    page = open_page(browser, report).page
    seen = "document.getElementById('plot-map').layout.xaxis.range"
    whole = page.evaluate(seen)
    page.locator("#map-in").click()
    assert page.evaluate(seen) == pytest.approx([0.23, 0.77])
    page.locator("#map-colour").select_option("truth")
    assert page.evaluate(seen) == pytest.approx([0.23, 0.77])
    page.locator("#map-all").click()
    assert page.evaluate(seen) == whole
    middle(page.locator("#plot-map"))
    box = page.locator("#plot-map").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.2 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.7 * box["height"], steps=4)
    page.mouse.up()
    page.wait_for_function(f"{seen}[1] < 0.8")
    page.locator("#plot-map .nsewdrag").dblclick()
    page.wait_for_function(f"{seen}[1] === {whole[1]}")


def test_mistakes_are_crosses_above_the_other_samples(browser: "Browser", report: Path) -> None:
    page = open_page(browser, report).page
    layers = page.locator("#plot-map .scatterlayer .trace")
    # Of the chosen run's 60 samples 50 are predicted right.
    assert layers.nth(0).locator("path.point").count() == 50
    assert layers.nth(1).locator("path.point").count() == 10


def test_a_phone_sees_that_a_table_goes_on(browser: "Browser", wide: Path) -> None:
    page = open_page(browser, wide, 400).page
    place = page.locator("#results figure:not([hidden]) .scroll")
    assert "goes-on" in str(place.get_attribute("class"))
    caption = "document.querySelector('#results figcaption')"
    cue = page.evaluate(f"getComputedStyle({caption}, '::after').content")
    assert "more columns" in cue
    place.evaluate("element => { element.scrollLeft = element.scrollWidth; }")
    page.wait_for_function("!document.querySelector('#results .scroll.goes-on')")
    first, around = place.locator("tbody th").first.bounding_box(), place.bounding_box()
    assert first is not None
    assert around is not None
    assert first["x"] == pytest.approx(around["x"], abs=1)
    assert page.locator("#plot-confusion .yaxislayer-above text").count() == 31
    assert page.locator("#plot-confusion .xaxislayer-above text").count() == 31


def test_one_logged_point_is_seen_and_thinning_is_said(browser: "Browser", wide: Path) -> None:
    page = open_page(browser, wide).page
    assert page.locator("#plot-terms .points path").count() == 1
    assert page.locator("#terms-note").inner_text() == ""
    page.locator("#run-seed").select_option(label="1")
    assert page.locator("#terms-note").inner_text() == (
        "The plot shows every 3rd logged point, 234 of 700."
    )


def test_paper_says_where_the_runs_are_listed(browser: "Browser", wide: Path) -> None:
    page = open_page(browser, wide).page
    assert page.locator(".on-paper").is_hidden()
    page.emulate_media(media="print")
    assert "each of the 12 finished runs" in page.locator(".on-paper").inner_text()
    assert page.locator("#runs details").first.is_hidden()
