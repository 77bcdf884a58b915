"""The benchmarks' literals against the published lists and the paper."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from equida.data import (
    BENCHMARKS,
    Benchmark,
    BenchmarkDomain,
    array_domain,
    benchmark,
    benchmarks,
    load_domain,
)
from equida.errors import InputError


def _lists(office31: Path) -> Path:
    folder = office31.parent / "lists"
    if not folder.is_dir():
        pytest.skip(f"needs the published lists in {folder}")
    return folder


@pytest.mark.parametrize(
    ("name", "domain", "file"),
    [
        ("office31", "A", "bnm-office/amazon_list.txt"),
        ("office31", "D", "bnm-office/dslr_list.txt"),
        ("office31", "W", "bnm-office/webcam_list.txt"),
        ("office_home", "Ar", "bnm-office-home/Art.txt"),
        ("office_home", "Cl", "bnm-office-home/Clipart.txt"),
        ("office_home", "Pr", "bnm-office-home/Product.txt"),
        ("office_home", "Rw", "bnm-office-home/Real_World.txt"),
        ("office_home", "Rw", "cdan-office-home/Real_World.txt"),
        ("visda2017", "Real", "afn-visda2017-validation.txt"),
    ],
)
def test_class_order_and_counts_are_the_published_ones(
    office31: Path, name: str, domain: str, file: str
) -> None:
    lines = (_lists(office31) / file).read_text().splitlines()
    pairs = [line.rsplit(" ", 1) for line in lines]
    counts = Counter(int(label) for _, label in pairs)
    named = {int(label): path.split("/")[-2] for path, label in pairs}
    chosen = benchmark(name)
    assert [named[label] for label in range(len(named))] == list(chosen.classes)
    assert [counts[label] for label in range(len(named))] == list(chosen.domain(domain).per_class)


def test_totals() -> None:
    totals = {
        name: {domain.key: domain.images for domain in BENCHMARKS[name].domains}
        for name in BENCHMARKS
    }
    assert totals == {
        "office31": {"A": 2817, "D": 498, "W": 795},
        "office_home": {"Ar": 2427, "Cl": 4365, "Pr": 4439, "Rw": 4357},
        "office_home_rsut": {"Cl": 4365, "Pr": 4439, "Rw": 4357},
        "visda2017": {"Synthetic": 152_397, "Real": 55_388},
        "digits": {"M": 5000, "U": 1797},
    }


def test_tasks_are_in_the_papers_column_order() -> None:
    assert benchmark("office31").tasks == ("A2W", "D2W", "W2D", "A2D", "D2A", "W2A")
    assert " ".join(benchmark("office_home").tasks) == (
        "Ar2Cl Ar2Pr Ar2Rw Cl2Ar Cl2Pr Cl2Rw Pr2Ar Pr2Cl Pr2Rw Rw2Ar Rw2Cl Rw2Pr"
    )
    assert " ".join(benchmark("visda2017").display_classes) == (
        "plane bcycl bus car horse knife mcycl person plant sktbrd train truck"
    )


def test_what_papers_train_with() -> None:
    """Backbones of the paper's tables; learning rates and crops of the BNM authors' code."""
    assert {name: BENCHMARKS[name].backbone for name in BENCHMARKS} == {
        "office31": "resnet50", "office_home": "resnet50", "office_home_rsut": "resnet50",
        "visda2017": "resnet101", "digits": "lenet",
    }  # fmt: skip
    assert {name: dict(BENCHMARKS[name].learning_rates) for name in BENCHMARKS} == {
        "office31": {"A2D": 3e-4, "D2W": 3e-4, "W2D": 3e-4},
        "office_home": {},
        "office_home_rsut": {},
        "visda2017": {"Synthetic2Real": 3e-4},
        "digits": {},
    }
    resized = {
        (name, domain.key)
        for name in BENCHMARKS
        for domain in BENCHMARKS[name].domains
        if domain.train_crop == "random-resized-crop"
    }
    assert resized == {("office31", "D"), ("office31", "W")}


def test_every_file_of_a_data_set_is_known() -> None:
    files = {file.stem for file in Path(benchmarks.__file__).parent.glob("*.py")}
    assert files - {"__init__", "base"} == set(BENCHMARKS)


def test_a_data_set_inside_a_package_brings_its_own_loader() -> None:
    rows = array_domain(np.zeros((2, 3)), ["mug", "pen"], name="S")
    domain = BenchmarkDomain("S", "Shop", "shop", (1, 1), load=lambda: rows)
    toy = Benchmark(
        name="toy", title="Toy", aliases=(), domains=(domain,), classes=("mug", "pen"), tasks=(),
        page="", obtain="nothing", layout="no folder",
    )  # fmt: skip
    assert toy.embedded
    assert load_domain(toy, "shop") is rows


@pytest.mark.parametrize("name", list(BENCHMARKS))
def test_every_literal_is_whole(name: str) -> None:
    chosen = BENCHMARKS[name]
    assert len(set(chosen.classes)) == len(chosen.classes) == len(chosen.display_classes)
    assert all(len(domain.per_class) == len(chosen.classes) for domain in chosen.domains)
    assert all(f"{s.key}2{t.key}" == task for task in chosen.tasks for s, t in [chosen.task(task)])
    assert chosen.embedded or chosen.page.startswith("http")
    mean = chosen.metric == "mean_class_accuracy"
    assert mean == (name in ("visda2017", "office_home_rsut"))


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("Office-31", "office31"), ("office31", "office31"), ("Office31", "office31"),
        ("OfficeHome", "office_home"), ("office-home", "office_home"),
        ("Office_Home", "office_home"), ("VisDA-2017", "visda2017"), ("visda", "visda2017"),
        ("VISDA-C", "visda2017"), ("Digits", "digits"),
    ],
)  # fmt: skip
def test_spellings_of_a_benchmark(spelling: str, name: str) -> None:
    assert benchmark(spelling).name == name


@pytest.mark.parametrize(
    ("name", "spelling", "key"),
    [
        ("office31", "Amazon", "A"), ("office31", "w", "W"), ("office_home", "RealWorld", "Rw"),
        ("office_home", "Real_World", "Rw"), ("office_home", "real world", "Rw"),
        ("visda2017", "train", "Synthetic"), ("visda2017", "validation", "Real"),
    ],
)  # fmt: skip
def test_spellings_of_a_domain(name: str, spelling: str, key: str) -> None:
    assert benchmark(name).domain(spelling).key == key


@pytest.mark.parametrize("spelling", ["A2W", "a2w", "amazon2webcam", "A->W", "A → W", "Amazon:W"])
def test_spellings_of_a_task(spelling: str) -> None:
    assert [domain.key for domain in benchmark("office31").task(spelling)] == ["A", "W"]


def test_what_does_not_exist_is_answered_with_what_does() -> None:
    with pytest.raises(InputError, match="did you mean 'office31'"):
        benchmark("ofice31")
    with pytest.raises(InputError, match=r"no domain 'caltech'; it has A \(Amazon\)"):
        benchmark("office31").domain("caltech")
    for wrong in ("A2A", "A2C", "AW", ""):
        with pytest.raises(InputError, match="it has A2W, D2W"):
            benchmark("office31").task(wrong)
