"""Feature files, images, image lists and names that are damaged, strange or hostile."""

import io
import json
import os
import struct
import warnings
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from PIL import Image
from tests.attack import Case, Outcome, family
from tests.attack.records import ODD, damaged, mutated, replaced

ROWS, LABELS = np.random.default_rng(0).normal(size=(24, 4)), np.arange(24) % 3
NAMES = [
    "a",
    "A",
    "\u00e9",
    "e\u0301",
    "\x1b[31mred\x1b[0m",
    "a\nb",
    "[/bold]",
    "[red]x",
    " ",
    "x" * 200,
    "\u202eabc",
    "{}",
    "%s",
    "-rf",
    "~",
    "a:b",
    "con",
    "\U0001f600",
    "\udce9",
    "nan",
    "0",
    "-1",
]


def _array(random: Random) -> Any:
    """An array that may or may not be rows."""
    dtype = random.choice(
        ["f4", "f8", ">f4", "f2", "i8", "u8", ">i2", "?", "c8", "g", "U3", "M8[s]"]
    )
    shape = random.choice([(24, 4), (24, 1), (24, 0), (0, 4), (24,), (), (24, 2, 4), (24, 1, 8, 8)])
    values = np.zeros(shape, dtype)
    if values.dtype.kind == "f" and values.size and random.random() < 0.3:
        values.flat[random.randrange(values.size)] = random.choice([np.nan, np.inf, 6e4])
    return values


def _npz(file: Path, random: Random) -> None:
    arrays: dict[str, Any] = {"a_x": ROWS, "a_y": LABELS, "b_x": ROWS, "b_y": LABELS}
    for _ in range(random.choice([0, 1, 1, 2])):
        key = random.choice([*arrays, "classes", "a_path", "X", "c_x"])
        choices = [_array(random), np.array(random.sample(NAMES, 3)), LABELS[:5], -LABELS]
        choices += [np.array(["x", "X", "y"])[LABELS], np.full(24, 2**62), LABELS.astype(object)]
        arrays[key] = random.choice(choices)
    with zipfile.ZipFile(
        file, "w", random.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    ) as to:
        for key, array in arrays.items():
            stream = io.BytesIO()
            np.lib.format.write_array(stream, np.asanyarray(array), allow_pickle=True)
            content = stream.getvalue()
            if random.random() < 0.08:
                content = random.choice([content[:-8], content + b"more", content[:60], b""])
            if random.random() < 0.05:
                content = content.replace(b"(24,", random.choice([b"(25,", b"(-4,", b"(99,"]), 1)
            to.writestr(f"{key}.npy", content)


def _safetensors(file: Path, random: Random) -> None:
    header: Any = {"format": 1, "domains": ["a", "b"], "classes": ["x", "y", "z"]}
    if random.random() < 0.5:
        header = mutated(header, random, [*ODD, *NAMES])
    entries: Any = {
        "__metadata__": {"equida": json.dumps(header)},
        "labels": {"dtype": "I64", "shape": [24], "data_offsets": [0, 192]},
        "domains": {"dtype": "I64", "shape": [24], "data_offsets": [192, 384]},
        "features": {"dtype": "F64", "shape": [24, 4], "data_offsets": [384, 1152]},
    }
    if random.random() < 0.4:
        codes = ["F32", "BF16", "C64", "F8_E4M3", "BOOL", "U8", [24], [4, 24], [24, 0], 2**40]
        entries = mutated(entries, random, [*ODD, *codes])
    text = json.dumps(entries).encode()
    owners = (np.arange(24) // 12 + random.choice([0, 0, 0, 5, -1])).astype("i8")
    content = LABELS.astype("i8").tobytes() + owners.tobytes() + ROWS.tobytes()
    size = len(text) if random.random() < 0.95 else random.choice([0, 2**63, 10**9])
    file.write_bytes(struct.pack("<Q", size) + text + content)


@family("feature files", quick=20, long=1000)
def feature_files(case: Case) -> Outcome:
    """A feature file that is not what it should be, in every command that takes one."""
    random = case.random
    file = case.folder / random.choice(["f.npz", "f.safetensors"])
    (_npz if file.suffix == ".npz" else _safetensors)(file, random)
    if random.random() < 0.15:
        file.write_bytes(damaged(file.read_bytes(), random))
    elif random.random() < 0.05:
        replaced(file, random)
    run = ["--iterations", 2, "--batch-size", 8, "--bottleneck", 4, "--quiet", "--out"]
    commands: list[list[object]] = [
        ["adapt", "-s", f"{file}:a", "-t", f"{file}:b", *run, case.folder / "run"],
        ["adapt", "-s", case.data / "toy.npz:a", "-t", f"{file}:b", *run, case.folder / "run"],
        ["doctor", "--data", file],
        ["features", file, "--out", case.folder / "g.safetensors"],
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # duplicate names, of zipfile itself
        return case.call(*random.choice(commands), codes=(0, 1, 2))


def _picture(random: Random) -> bytes:
    """The bytes of an image in some format and mode."""
    stream = io.BytesIO()
    mode = random.choice(["RGB", "RGBA", "L", "P", "1", "CMYK", "I;16", "LA"])
    form = random.choice(["JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM"])
    size = random.choice([(1, 1), (3, 500), (40, 30), (500, 2)])
    try:
        Image.new(mode, size).save(stream, form)
    except (OSError, ValueError, KeyError):
        Image.new("RGB", size).save(stream, "PNG")
    return stream.getvalue()


@family("images", quick=6, long=300)
def images(case: Case) -> Outcome:
    """Class folders in which an image is damaged, or is not a file at all."""
    random, root = case.random, case.folder / "photos"
    for name in ("red", "green"):
        (root / name).mkdir(parents=True)
        for number in range(3):
            ending = random.choice([".jpg", ".png", ".gif", ".tif", ".bmp", ".webp", ".ppm"])
            (root / name / f"{number}{ending}").write_bytes(_picture(random))
    file = random.choice(sorted(root.glob("*/*")))
    if random.random() < 0.3:
        replaced(file, random)
    elif random.random() < 0.7:
        file.write_bytes(damaged(file.read_bytes(), random))
    skip = random.choice([[], ["--skip-unreadable"]])
    out = ["--backbone", "tiny_backbone:net", "--out", case.folder / "run"]
    train = ["--iterations", 1, "--batch-size", 2, "--recipe", "features", "--quiet"]
    commands: list[list[object]] = [
        ["adapt", "-s", root, "-t", case.data / "photos", *train, *out, *skip],
        ["adapt", "-s", root, "-t", root, *train, *out, *skip],
        ["doctor", "--data", root, *random.choice([[], ["--deep"]])],
    ]
    return case.call(*random.choice(commands), codes=(0, 1, 2))


@family("lists", quick=8, long=500)
def lists(case: Case) -> Outcome:
    """An image list with odd lines."""
    random, file = case.random, case.folder / "list.txt"
    good = [
        f"photos/{name}/{n}.jpg {k}"
        for k, name in enumerate(("blue", "green", "red"))
        for n in (0, 1)
    ]
    odd = [
        "",
        "photos/red/0.jpg",
        "photos/red/0.jpg -1",
        f"photos/red/0.jpg {10**30}",
        "x.jpg 0",
        "photos/red/9.jpg 2",
        "photos/red/0.jpg 0",
        "photos/Red/0.jpg 2",
        "\x1b[31m.jpg 1",
        "a\0.jpg 1",
        "x" * 5000 + ".jpg 1",
        "/".join("d" * 3000) + "/a.jpg 0",
        "photos/red/0.jpg 2.5",
        "../" * 500 + "a.jpg 1",
        "photos\\red\\0.jpg 2",
        "photos/red/0.jpg \u0662",
        "\udce9/a.jpg 1",
        "//// 1",
        "~root/a.jpg 1",
        "photos/red/0.jpg 99999",
        "photos/red/0.jpg " + "9" * 5000,
    ]
    lines = good if random.random() < 0.8 else []
    for _ in range(random.choice([1, 1, 2, 5])):
        lines = [*lines]
        lines.insert(random.randrange(len(lines) + 1), random.choice(odd))
    content = "\n".join(lines).encode("utf-8", "surrogateescape")
    file.write_bytes(damaged(content, random) if random.random() < 0.1 else content)
    if random.random() < 0.05:
        replaced(file, random)
    (case.folder / "photos").symlink_to(case.data / "photos")
    train = ["--iterations", 1, "--batch-size", 2, "--recipe", "features", "--quiet"]
    out = ["--backbone", "tiny_backbone:net", "--out", case.folder / "run"]
    commands: list[list[object]] = [
        ["adapt", "-s", file, "-t", case.data / "photos", *train, *out],
        ["doctor", "--data", file],
    ]
    return case.call(*random.choice(commands), codes=(0, 1, 2))


@family("names", quick=8, long=500)
def names(case: Case) -> Outcome:
    """Folders, classes and files with strange names; nothing of them reaches the terminal raw."""
    random = case.random
    usable = [name for name in NAMES if "/" not in name]
    root = case.folder / random.choice(usable)
    for name in random.sample(usable, 3):
        (root / name).mkdir(parents=True, exist_ok=True)
        for number in range(2):
            file = root / name / f"{random.choice(usable)[:50]}{number}.png"
            Image.new("RGB", (8, 8)).save(file)
    if random.random() < 0.3:
        os.mkfifo(root / name / f"{random.choice(usable)[:50]}.jpg")
    train = ["--iterations", 1, "--batch-size", 2, "--recipe", "features", "--quiet"]
    out = ["--backbone", "tiny_backbone:net", "--out", case.folder / "run"]
    other = random.choice([root, case.data / "photos"])
    commands: list[list[object]] = [
        ["adapt", f"--source={root}", f"--target={other}", *train, *out],
        ["doctor", f"--data={root}"],
        ["predict", root, root / name],
        ["report", root, "--out", case.folder / "r.html"],
        [
            "features",
            root,
            "--backbone",
            "tiny_backbone:net",
            "--out",
            case.folder / "f.safetensors",
        ],
    ]
    outcome = case.call(*random.choice(commands), codes=(0, 1, 2))
    shown = outcome.detail.split("exit code", 1)[-1]
    if outcome.clean and any(mark in shown for mark in "\x1b\u202e\x07"):
        return Outcome("wrong", f"raw escape codes\n{outcome.detail!r}")
    return outcome
