"""What happens around the steps: logging, evaluation, checkpoints, the result."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from lightning_fabric import Fabric
from torch import Tensor

from equida.data import Task
from equida.data.loading import BatchStream, derived_seed
from equida.data.samples import Batch
from equida.errors import InputError
from equida.training.build import Built
from equida.training.checkpoint import capture, put_back
from equida.training.distributed import mean_over_processes, on_first, processes
from equida.training.evaluate import Predictions, measure, picks, predict
from equida.training.folder import RunFolder


class Observer(Protocol):
    """What wants to know how a run goes: a progress bar, a log viewer."""

    def logged(self, step: int, terms: Mapping[str, float]) -> None: ...
    def evaluated(self, step: int, figures: Mapping[str, float]) -> None: ...


@runtime_checkable
class Stepped(Protocol):
    """An observer that is told of every step; it must not look at tensors."""

    def stepped(self, step: int) -> None: ...


@dataclass(frozen=True)
class Trained:
    """A finished run: what was built, the final target predictions, and result.json's content."""

    built: Built
    predictions: Predictions
    result: dict[str, Any]


class Noted(NamedTuple):
    """What is kept of a batch until its loss is looked at."""

    number: int
    """Of the batch; with gradient accumulation a step has several."""
    terms: list[Tensor]


class Progress:
    """The run's record while it goes on."""

    def __init__(
        self,
        task: Task,
        built: Built,
        fabric: Fabric,
        folder: Path | None,
        observers: tuple[Observer, ...],
    ) -> None:
        self.task, self.built, self.fabric, self.observers = task, built, fabric, observers
        self.config, self.recipe = built.config, built.config.recipe
        self.steppers = [observer for observer in observers if isinstance(observer, Stepped)]
        self.folder = RunFolder(folder) if folder and fabric.is_global_zero else None
        self.history: list[dict[str, float]] = []
        self.names: tuple[str, ...] = ()
        self.pending: list[Noted] = []
        self.streams: dict[str, tuple[Any, BatchStream]] = {}
        self.best: dict[str, Tensor] | None = None
        self.seconds, self.started = 0.0, time.monotonic()
        self.predictions: Predictions | None = None

    def resume(self) -> int:
        """Take up an unfinished run of the same config; the number of steps done."""
        state = on_first(self.fabric, self._left)
        if state is None:
            return 0
        put_back(state, self.built, self.fabric)
        self.history, self.seconds = state["history"], state["seconds"]
        if self.folder and self.recipe.keep != "last":
            self.best = self.folder.load_tensors("model.safetensors")
        return int(state["step"])

    def _left(self) -> dict[str, Any] | None:
        """What an earlier process left in the folder, which is made ready to go on."""
        if not self.folder:
            return None
        if (self.folder.path / "result.json").exists():
            raise InputError(f"{self.folder.path} holds a finished run; choose another folder")
        state = self.folder.load_checkpoint()
        if state and state["config"] != self.config.digest():
            raise InputError(
                f"{self.folder.path} holds an unfinished run of another configuration; "
                "finish or remove it, or choose another folder"
            )
        self.folder.truncate_log(state["step"] if state else -1)
        self.folder.write_json("config.json", self.config.to_json(processes(self.fabric)))
        return state

    def stream(self, role: str, domain: Any, transform: Any, start: int) -> BatchStream:
        """Batches of this process's share, from batch number `start` on."""
        made = BatchStream(
            domain,
            self.recipe.batch_size,
            transform,
            # Of domains of one size, the same seed would draw the same positions side by side.
            seed=derived_seed(self.config.seed, role),
            start=start,
            workers=self.recipe.workers,
            pin_memory=self.fabric.device.type == "cuda",
            rank=self.fabric.global_rank,
            world_size=self.fabric.world_size,
        )
        self.streams[role] = domain, made
        return made

    def inputs(self, source: Batch | None, target: Batch) -> tuple[Tensor | None, ...]:
        """The batches on the device, in the precision and layout of the network."""
        if source is None:
            return None, None, self._placed(target.x)
        labels = source.labels.to(self.fabric.device, non_blocking=True)
        return self._placed(source.x), labels, self._placed(target.x)

    def _placed(self, x: Tensor) -> Tensor:
        layout = torch.preserve_format
        if self.recipe.channels_last and x.ndim == 4:
            layout = torch.channels_last
        dtype = self.built.dtype
        return x.to(self.fabric.device, dtype, non_blocking=True, memory_format=layout)

    def note(self, number: int, terms: dict[str, Tensor]) -> None:
        """Keep a batch's terms, on the device, until the next logging step reads them."""
        self.names = tuple(terms)
        self.pending.append(Noted(number, [term.detach() for term in terms.values()]))

    def after(self, done: int) -> None:
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
        terms = torch.stack([term for noted in self.pending for term in noted.terms])
        # Heads with dropout say something else on every process; all stop if one has to.
        terms = mean_over_processes(self.fabric, terms)
        rows = terms.cpu().double().view(len(self.pending), len(self.names))
        if not bool(rows.isfinite().all()):
            on_first(self.fabric, partial(self._diverged, rows))
        means = dict(zip(self.names, rows.mean(0).tolist(), strict=True))
        self.pending.clear()
        if self.folder:
            self.folder.append_log({"step": done, "terms": means})
        for observer in self.observers:
            observer.logged(done, means)

    def _diverged(self, rows: Tensor) -> None:
        """Say and write down which batch was the first without a finite loss."""
        entry, column = (~rows.isfinite()).nonzero()[0].tolist()
        noted, term, value = self.pending[entry], self.names[column], rows[entry, column].item()
        # Every process has the loss of the global batch: the fault may be another one's sample.
        samples = {
            role: [domain.identity(index) for index in stream.samples(noted.number).tolist()]
            for role, (domain, stream) in self.streams.items()
        }
        step, where, kept = noted.number // self.recipe.accumulate, "", ""
        if self.folder:
            what = {"step": step, "term": term, "value": str(value), "samples": samples}
            self.folder.write_json("diverged.json", what)
            where = f" (all in {self.folder.path / 'diverged.json'})"
            kept = "; the last good checkpoint is kept" if self.history else ""
        some = "; ".join(f"{name} {', '.join(names[:2])}" for name, names in samples.items())
        raise InputError(
            f"the loss term {term!r} is {value} at step {step}, on"
            f" {sum(map(len, samples.values()))} samples such as {some}{where}; lower the learning"
            f" rate, clip the gradient, or look at the samples{kept}"
        )

    def _evaluate(self, done: int) -> None:
        self.predictions = self._predict(self.task.target)
        source = None if self.built.held_out is None else self._predict(self.built.held_out)
        if not bool(self.predictions.log_probs.isfinite().all()):
            raise InputError(
                f"target predictions are not finite after step {done}; lower the learning rate, "
                "or look for bad values among the target samples"
            )
        figures = {"step": float(done)} | measure(self.predictions, source)
        self.history.append(figures)
        if self.folder:
            self.folder.append_log({"step": done, "evaluation": figures})
        for observer in self.observers:
            observer.evaluated(done, figures)

    def _predict(self, domain: Any) -> Predictions:
        return predict(
            self.built.objective,
            domain,
            self.built.test_view,
            batch_size=self.recipe.eval_batch_size,
            workers=self.recipe.workers,
            fabric=self.fabric,
        )

    def _save(self, done: int) -> None:
        if self.recipe.keep != "last":
            best = picks(self.history, self.built.metric)[self.recipe.keep]
            if best["step"] == done:
                state = self.built.state()
                self.best = {name: value.detach().cpu().clone() for name, value in state.items()}
                if self.folder:
                    self.folder.save_tensors("model.safetensors", self.best)
        state = capture(self.built, self.fabric)
        if self.folder:
            passed = {"step": done, "history": self.history, "seconds": self.elapsed()}
            self.folder.save_checkpoint(state | passed)

    def elapsed(self) -> float:
        return self.seconds + time.monotonic() - self.started

    def finish(self) -> Trained:
        """Write weights, predictions and, last, the result."""
        if self.recipe.keep != "last":
            best = self.fabric.broadcast(self.best)
            assert best is not None, "the last step is evaluated, so that something was picked"
            self.built.load_state(best)
            self.predictions = None
        predictions = self.predictions or self._predict(self.task.target)
        result = {
            "task": self.task.name,
            "benchmark": self.config.benchmark,
            "method": self.config.method,
            "seed": self.config.seed,
            "classes": list(self.task.classes),
            "metric": self.built.metric,
            "kept": self.recipe.keep,
            "last": self.history[-1],
            "picks": picks(self.history, self.built.metric),
            "seconds": round(self.elapsed(), 3),
        }
        confusion = predictions.confusion()
        if confusion is not None:
            result["confusion"] = confusion.tolist()
        if self.folder:
            self._write(self.folder, predictions, result)
        return Trained(self.built, predictions, result)

    def _write(self, folder: RunFolder, predictions: Predictions, result: dict[str, Any]) -> None:
        target = self.task.target
        folder.save_tensors("model.safetensors", self.built.state())
        folder.save_tensors(
            "predictions.safetensors",
            {"probs": predictions.log_probs.exp(), "labels": predictions.labels},
            {
                "samples": json.dumps([target.identity(i) for i in range(len(target))]),
                "classes": json.dumps(list(self.task.classes)),
            },
        )
        folder.write_json("result.json", result)
        folder.remove_checkpoint()
