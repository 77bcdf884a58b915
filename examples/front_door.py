"""Everything that the command line does, from Python: on two folders of images, and on a benchmark.

The folders are small ones of handwritten digits, made from data that come with installed packages.
"""

import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import equida
from equida.data import load_domain


def write_images(domain: str, folder: Path, per_class: int = 6) -> None:
    """Some digits of a domain as PNG files in class folders."""
    images = load_domain("digits", domain)
    assert images.labels is not None
    for label, name in enumerate(images.classes):
        (folder / name).mkdir(parents=True)
        for number in np.flatnonzero(images.labels == label)[:per_class]:
            pixels = np.asarray(images[int(number)])[0] * 255
            image = Image.fromarray(pixels.astype(np.uint8)).resize((64, 64))
            image.save(folder / name / f"{number}.png")


def main(folder: Path) -> None:
    photos, clipart = folder / "photos", folder / "clipart"
    write_images("M", photos)
    write_images("U", clipart)

    run = equida.adapt(
        photos,
        clipart,
        method="nsm",
        features=True,
        seed=0,
        out=folder / "run",
        recipe_params={"iterations": 60, "evaluate_every": 20, "batch_size": 12},
    )
    print(run)
    print("accuracy", run.accuracy, "equity", run.equity)
    print("picks", {name: pick.step for name, pick in run.picks.items()})
    print(run.curves())

    labels = run.predict(clipart)
    labels.to_csv(folder / "labels.csv")
    print(labels.to_frame().head())
    run.export(folder / "model")
    run.report(folder / "page.html")
    again = equida.load_run(folder / "run")
    print("read again:", again.accuracy == run.accuracy)

    features = equida.extract_features(photos)
    print(features, features.x.shape, features.classes[:3], features.paths[0])

    results = equida.bench(
        "digits",
        methods=["source_only", "nsm"],
        tasks=["M2U"],
        seeds=1,
        recipe_params={"iterations": 20, "evaluate_every": 20},
        out=folder / "runs",
    )
    print(results)
    print(results.to_frame())
    print(results.to_latex())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(scratch))
