"""What is recorded around the steps: losses, evaluations, checkpoints, the result."""

import dataclasses
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from equida.data import ArrayDomain, Task
from equida.data.task import columns_of
from equida.errors import InputError, counted
from equida.evaluation.figures import measure
from equida.evaluation.predictions import DomainPredictions, InputRows
from equida.evaluation.validators import VALIDATORS
from equida.training.build import Built
from equida.training.checkpoint import capture, config_of, restore_state
from equida.training.evaluate import input_rows, network_of, picks, predict
from equida.training.feed import Feed
from equida.training.folder import RunFolder
from equida.training.prepare import cluster_labels_of, task_rows
from equida.training.processes import AnyFabric, mean_over_processes, on_rank_zero, processes
from equida.training.schema import SCHEMA


class Observer(Protocol):
    """Something that is told how a run goes: a progress bar, a log viewer."""

    def logged(self, step: int, terms: Mapping[str, float]) -> None: ...
    def evaluated(self, step: int, figures: Mapping[str, float]) -> None: ...


@runtime_checkable
class Stepped(Protocol):
    """An observer that is told of every step; it must not look at tensors."""

    def stepped(self, step: int) -> None: ...


@runtime_checkable
class Announced(Protocol):
    """An observer that is told of what is done before training and takes long."""

    def announced(self, what: str) -> None: ...


@runtime_checkable
class SeesPredictions(Protocol):
    """An observer that is shown what each evaluation predicts, with features, before its figures.

    The target has its labels here, so that an observer can measure; validators take them away.
    """

    def predictions(
        self, step: int, target: DomainPredictions, source: DomainPredictions | None
    ) -> None: ...


@dataclass(frozen=True)
class Trained:
    """A finished run: what was built, the final target predictions, and result.json's content."""

    built: Built
    predictions: DomainPredictions
    result: dict[str, Any]


class BatchTerms(NamedTuple):
    """The loss terms of a batch, kept on the device until the next logging step reads them."""

    number: int
    """The number of the batch; with gradient accumulation a step has several batches."""
    terms: dict[str, Tensor]


class Recorder:
    """Records a run while it goes on: its log, evaluations, checkpoints and, last, its result.

    Args:
        feed: knows which samples a batch had.
        folder: where rank zero writes the run; None: nothing is written.
        observers: told of losses and evaluations as they come.
        validators: costly ones that each evaluation computes, besides the one that `keep` names.
    """

    def __init__(
        self,
        task: Task,
        built: Built,
        fabric: AnyFabric,
        feed: Feed,
        folder: Path | None,
        observers: tuple[Observer, ...],
        validators: tuple[str, ...] = (),
    ) -> None:
        self.task, self.built, self.fabric, self.feed = task, built, fabric, feed
        self.observers = observers
        self.config, self.recipe = built.config, built.config.recipe
        self.steppers = [observer for observer in observers if isinstance(observer, Stepped)]
        self.folder = RunFolder(folder) if folder and fabric.is_global_zero else None
        self.history: list[dict[str, float]] = []
        self.pending: list[BatchTerms] = []
        self.best: dict[str, Tensor] | None = None
        self.seconds, self.started = 0.0, time.monotonic()
        self.predictions: DomainPredictions | None = None
        self.asked = {self.recipe.keep, *validators}
        computed = [
            VALIDATORS[name]
            for name in VALIDATORS
            if not VALIDATORS[name].costly or name in self.asked
        ]
        self.needs: set[str] = {need for validator in computed for need in validator.needs}
        self.viewers = [observer for observer in observers if isinstance(observer, SeesPredictions)]
        if self.viewers:
            self.needs |= {"features", "network"}
        both = any({"source", "inputs"} <= set(validator.needs) for validator in computed)
        self.source_inputs = both or bool(self.viewers)
        self.inputs: dict[str, InputRows | None] = {}
        kept = VALIDATORS.get(self.recipe.keep)
        looks = kept and {"inputs", "cluster_labels"} & set(kept.needs)
        if kept and looks and not isinstance(task.target, ArrayDomain):
            raise InputError(
                f"keep is {kept.name!r}, which needs rows such as features, and the target has"
                " images; compute features (--features), or choose another"
            )

    def resume(self) -> int:
        """Continue an unfinished run of the same config; returns how many steps are done."""
        state = on_rank_zero(self.fabric, self._unfinished_state)
        if state is None:
            return 0
        restore_state(state, self.built, self.fabric)
        self.history, self.seconds = state["history"], state["seconds"]
        if self.folder and self.recipe.keep != "last":
            self.best = self.folder.load_tensors("model.safetensors")
        return int(state["step"])

    def _unfinished_state(self) -> dict[str, Any] | None:
        """The checkpoint that an earlier process left; the folder is made ready to continue."""
        if not self.folder:
            return None
        if (self.folder.path / "result.json").exists():
            raise InputError(f"{self.folder.path} holds a finished run; choose another folder")
        state = self.folder.load_checkpoint()
        if state and not (there := config_of(state)).describes_same_run(self.config):
            raise InputError(
                f"{self.folder.path} holds an unfinished run of another configuration"
                f" ({there.difference(self.config)}); finish or remove it, or choose another folder"
            )
        self.folder.truncate_log(state["step"] if state else -1)
        self.folder.write_json("config.json", self.config.to_json(processes(self.fabric)))
        return state

    def add_terms(self, number: int, terms: dict[str, Tensor]) -> None:
        """Keep a batch's terms, on the device, until the next logging step reads them."""
        self.pending.append(BatchTerms(number, {name: t.detach() for name, t in terms.items()}))

    def after_step(self, done: int) -> None:
        """Log, evaluate and save what is due once `done` steps are done."""
        evaluate = done == self.recipe.iterations or done % self.recipe.evaluate_every == 0
        if evaluate or done % self.recipe.log_every == 0:
            self._log(done)
        if evaluate:
            self._evaluate(done)
            self._save(done)
        for observer in self.steppers:
            observer.stepped(done)

    def _log(self, done: int) -> None:
        terms = torch.stack([term for batch in self.pending for term in batch.terms.values()])
        # Heads with dropout have another loss on every process; all stop if one has to.
        values = mean_over_processes(self.fabric, terms).cpu().double()
        if not bool(values.isfinite().all()):
            on_rank_zero(self.fabric, partial(self._diverged, values.tolist()))
        # A method may return other terms at other times; each has the mean of when it was there.
        found: dict[str, list[float]] = {}
        for (_, name), value in zip(self._pending_terms(), values.tolist(), strict=True):
            found.setdefault(name, []).append(value)
        means = {name: fmean(values) for name, values in found.items()}
        self.pending.clear()
        if self.folder:
            self.folder.append_log({"step": done, "terms": means})
        for observer in self.observers:
            observer.logged(done, means)

    def _pending_terms(self) -> Iterator[tuple[int, str]]:
        """The batch and the name of each pending term."""
        return ((batch.number, name) for batch in self.pending for name in batch.terms)

    def _diverged(self, values: Sequence[float]) -> None:
        """Raise, and write down, which batch was the first without a finite loss."""
        pairs = zip(self._pending_terms(), values, strict=True)
        (number, term), value = next(pair for pair in pairs if not math.isfinite(pair[1]))
        # Every process has the loss of the global batch: the bad sample may be another's.
        samples = self.feed.samples(number)
        step, stored, kept = number // self.recipe.accumulate, "", ""
        if self.folder:
            what = {"step": step, "term": term, "value": str(value), "samples": samples}
            self.folder.write_json("diverged.json", what)
            stored = f" (all in {self.folder.path / 'diverged.json'})"
            kept = "; the last good checkpoint is kept" if self.history else ""
        some = "; ".join(f"{name} {', '.join(names[:2])}" for name, names in samples.items())
        raise InputError(
            f"the loss term {term!r} is {value} at step {step}, on"
            f" {sum(map(len, samples.values()))} samples such as {some}{stored}; scale the columns"
            " of a table, lower the learning rate, clip the gradient, or look at the samples"
            f"{kept}"
        )

    def _evaluate(self, done: int) -> None:
        self.predictions = self._predict("target", self.task.judged)
        held_out = self.built.held_out
        source = None if held_out is None else self._predict("source", held_out)
        if not bool(self.predictions.log_probs.isfinite().all()):
            raise InputError(
                f"target predictions are not finite after step {done}; lower the learning rate, "
                "or look for bad values among the target samples"
            )
        for viewer in self.viewers:
            viewer.predictions(done, self.predictions, source)
        figures = {"step": float(done)} | measure(self.predictions, source, self.asked)
        self.history.append(figures)
        if self.folder:
            self.folder.append_log({"step": done, "evaluation": figures})
        for observer in self.observers:
            observer.evaluated(done, figures)

    def predict_held_out(self) -> DomainPredictions | None:
        """The predictions for source samples that were not trained on; None without such."""
        kept_apart = self.recipe.holdout and self.built.held_out is not None
        return self._predict("source", self.built.held_out) if kept_apart else None

    def _predict(self, role: str, domain: Any) -> DomainPredictions:
        if role not in self.inputs:
            wanted = "inputs" in self.needs and (role == "target" or self.source_inputs)
            self.inputs[role] = input_rows(domain) if wanted else None
        predictions = predict(
            self.built.objective,
            domain,
            self.built.eval_transform,
            batch_size=self.recipe.eval_batch_size,
            workers=self.recipe.workers,
            fabric=self.fabric,
            features="features" in self.needs,
            inputs=self.inputs[role],
        )
        if role == "target" and "cluster_labels" in self.needs:
            predictions = dataclasses.replace(predictions, cluster_labels=self._cluster_labels)
        if role == "target" and "network" in self.needs and isinstance(domain, ArrayDomain):
            network = network_of(
                self.built.objective,
                domain,
                batch_size=self.recipe.eval_batch_size,
                fabric=self.fabric,
            )
            predictions = dataclasses.replace(predictions, network=network)
        return predictions

    @cached_property
    def _cluster_labels(self) -> Tensor:
        """What clusters of the inputs say of the target, for the validator that asks for it."""
        judged = dataclasses.replace(self.task, target=self.task.judged, test=None)
        return on_rank_zero(self.fabric, lambda: cluster_labels_of(task_rows(self.built, judged)))

    def _save(self, done: int) -> None:
        if self.recipe.keep != "last":
            best = picks(self.history, self.config.metric).get(self.recipe.keep)
            if best is None:
                raise InputError(
                    f"keep is {self.recipe.keep!r}, which cannot be computed for a target of"
                    f" {counted(len(self.task.judged), 'sample')}; leave it out, or keep another"
                    " step"
                )
            if best["step"] == done:
                state = self.built.objective.state_dict()
                self.best = {name: value.detach().cpu().clone() for name, value in state.items()}
                if self.folder:
                    self.folder.save_tensors("model.safetensors", self.best)
        state = capture(self.built, self.fabric)
        if self.folder:
            passed = {"step": done, "history": self.history, "seconds": self.elapsed()}
            self.folder.save_checkpoint(state | passed)

    def elapsed(self) -> float:
        return self.seconds + time.monotonic() - self.started

    def finish(self, describe: Callable[[DomainPredictions], dict[str, Any]]) -> Trained:
        """Write weights, predictions and, last, the result.

        Args:
            describe: makes further entries of the result from the final target predictions; its
                time counts as `further_seconds`, not as the run's seconds.
        """
        seconds = round(self.elapsed(), 3)
        if self.recipe.keep != "last":
            best = self.fabric.broadcast(self.best)
            assert best is not None, "the last step is evaluated, so that something was picked"
            self.built.objective.load_state_dict(best)
            self.predictions = None
        predictions = self.predictions or self._predict("target", self.task.judged)
        result: dict[str, Any] = {
            "schema": SCHEMA,
            "task": self.task.name,
            "benchmark": self.config.benchmark,
            "method": self.config.method,
            "seed": self.config.seed,
            "recipe_name": self.config.recipe_name,
            "data_sha256": self.config.data_sha256,
            "weights_sha256": self.config.weights_sha256,
            "classes": list(self.task.classes),
            "metric": self.config.metric,
            "kept": self.recipe.keep,
            "last": self.history[-1],
            "picks": picks(self.history, self.config.metric),
            "seconds": seconds,
        }
        if columns := columns_of(self.task.target) or columns_of(self.task.source):
            result["columns"] = list(columns)
        if self.config.aims:
            result["aims"] = {name: asdict(aim) for name, aim in self.config.aims.items()}
        began = time.monotonic()
        result |= describe(predictions.without_labels)
        result["further_seconds"] = round(time.monotonic() - began, 3)
        confusion = predictions.confusion
        if confusion is not None:
            result["confusion"] = confusion.tolist()
        if self.folder:
            self._write(self.folder, predictions, result)
        return Trained(self.built, predictions, result)

    def _write(
        self, folder: RunFolder, predictions: DomainPredictions, result: dict[str, Any]
    ) -> None:
        target, labels = self.task.judged, predictions.labels
        assert labels is not None, "a domain has labels, of -1 where they are unknown"
        folder.save_tensors("model.safetensors", self.built.objective.state_dict())
        folder.save_tensors(
            "predictions.safetensors",
            {"probs": predictions.log_probs.exp(), "labels": labels},
            {
                "samples": json.dumps([target.identity(i) for i in range(len(target))]),
                "classes": json.dumps(list(self.task.classes)),
            },
        )
        folder.write_json("result.json", result)
        folder.remove_checkpoint()
