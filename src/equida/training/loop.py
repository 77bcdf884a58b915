"""The one training loop: every method, on images and on features, on one process and on many."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from lightning_fabric import Fabric
from torch import Tensor

from equida.data import Task
from equida.data.loading import BatchStream
from equida.data.samples import Batch
from equida.errors import InputError
from equida.training.build import Built, build
from equida.training.config import RunConfig
from equida.training.evaluate import VALIDATORS, Predictions, measure, picks, predict
from equida.training.folder import RunFolder
from equida.training.optim import schedule


class Observer(Protocol):
    """What wants to know how a run goes: a progress bar, a log viewer."""

    def logged(self, step: int, terms: Mapping[str, float]) -> None: ...
    def evaluated(self, step: int, figures: Mapping[str, float]) -> None: ...


@dataclass(frozen=True)
class Trained:
    """A finished run: what was built, the final target predictions, and result.json's content."""

    built: Built
    predictions: Predictions
    result: dict[str, Any]


def train(
    config: RunConfig,
    task: Task,
    *,
    folder: Path | None = None,
    fabric: Fabric | None = None,
    observers: tuple[Observer, ...] = (),
) -> Trained:
    """Adapt a network from the task's source to its target.

    Args:
        config: the method and how it is trained.
        task: the data.
        folder: where the run is written; an unfinished one there goes on. None: nothing is written.
        fabric: device, precision and processes; None: one process on the best device.
        observers: told of losses and evaluations as they come.
    """
    recipe = config.recipe
    fabric = fabric or Fabric(devices=1, precision=recipe.precision)
    torch.manual_seed(config.seed)
    built = build(config, task, fabric)
    objective, optimizer = fabric.setup(built.objective, built.optimizer)
    torch.manual_seed(config.seed + fabric.global_rank)
    run = Progress(config, task, built, fabric, folder, observers)
    start = run.resume()
    draws = start * recipe.accumulate
    sources = None if built.source is None else run.stream(built.source, built.source_view, draws)
    targets = run.stream(task.target, built.target_view, draws)

    for step in range(start, recipe.iterations):
        schedule(optimizer, recipe, step)
        for part in range(recipe.accumulate):
            source, target = None if sources is None else next(sources), next(targets)
            last = part == recipe.accumulate - 1
            with fabric.no_backward_sync(objective, enabled=not last):
                terms = objective(*run.inputs(source, target), step / recipe.iterations)
                fabric.backward(torch.stack(list(terms.values())).sum() / recipe.accumulate)
            run.note(step, terms, source, target)
        if recipe.clip:
            fabric.clip_gradients(objective, optimizer, max_norm=recipe.clip)
        optimizer.step()
        optimizer.zero_grad()
        run.after(step + 1)
    return run.finish()


class Progress:
    """What happens around the steps: logging, evaluation, checkpoints, the result."""

    def __init__(
        self,
        config: RunConfig,
        task: Task,
        built: Built,
        fabric: Fabric,
        folder: Path | None,
        observers: tuple[Observer, ...],
    ) -> None:
        self.config, self.task, self.built, self.fabric = config, task, built, fabric
        self.recipe = config.recipe
        self.observers = observers
        writes = folder is not None and fabric.is_global_zero
        self.folder = RunFolder(folder) if writes and folder else None
        self.path = folder
        self.history: list[dict[str, float]] = []
        self.pending: list[tuple[int, dict[str, Tensor], Batch | None, Batch]] = []
        self.seconds = 0.0
        self.started = time.monotonic()
        self.predictions: Predictions | None = None

    def stream(self, domain: Any, transform: Any, start: int) -> BatchStream:
        """Batches of this process's share, from draw number `start` on."""
        return BatchStream(
            domain,
            self.recipe.batch_size,
            transform,
            seed=self.config.seed,
            start=start,
            workers=self.recipe.workers,
            pin_memory=self.fabric.device.type == "cuda",
            rank=self.fabric.global_rank,
            world_size=self.fabric.world_size,
        )

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

    def note(
        self, step: int, terms: dict[str, Tensor], source: Batch | None, target: Batch
    ) -> None:
        """Keep a step's terms, on the device, until the next logging step reads them."""
        detached = {name: term.detach() for name, term in terms.items()}
        self.pending.append((step, detached, source, target))

    def after(self, done: int) -> None:
        """Log, evaluate and save what is due once `done` steps are done."""
        final = done == self.recipe.iterations
        evaluate = final or done % self.recipe.evaluate_every == 0
        if evaluate or done % self.recipe.log_every == 0:
            self._log(done)
        if evaluate:
            self._evaluate(done)
            self._save(done)

    def _log(self, done: int) -> None:
        names = list(self.pending[0][1])
        values = torch.stack([torch.stack(list(terms.values())) for _, terms, _, _ in self.pending])
        rows = values.double().cpu()
        bad = (~rows.isfinite()).nonzero()
        if len(bad):
            entry, term = bad[0].tolist()
            raise self._diverged(entry, names[term], rows[entry, term].item())
        means = dict(zip(names, rows.mean(0).tolist(), strict=True))
        self.pending.clear()
        if self.folder:
            self.folder.append_log({"step": done, "terms": means})
        for observer in self.observers:
            observer.logged(done, means)

    def _diverged(self, entry: int, term: str, value: float) -> InputError:
        step, _, source, target = self.pending[entry]
        files = [
            domain.identity(int(index))
            for domain, batch in (
                (self.task.source, source),
                (self.task.target, target),
            )
            if batch is not None
            for index in batch.indices
        ]
        if self.folder:
            self.folder.write_json("diverged.json", {"step": step, "term": term, "samples": files})
        shown = ", ".join(files[:4])
        where = f" (all in {self.folder.path / 'diverged.json'})" if self.folder else ""
        return InputError(
            f"the loss term {term!r} is {value} at step {step}, on {len(files)} samples such as "
            f"{shown}{where}; lower the learning rate, clip the gradient, or look at the samples. "
            "The last good checkpoint is kept"
        )

    def _evaluate(self, done: int) -> None:
        self.predictions = self._predict(self.task.target)
        source = None if self.built.held_out is None else self._predict(self.built.held_out)
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
        if self.recipe.keep != "last" and self.folder:
            best = picks(self.history, self.built.metric)[self.recipe.keep]
            if best["step"] == done:
                self.folder.save_tensors("model.safetensors", self.built.state())
        states = self._rng_states()
        if self.folder:
            self.folder.save_checkpoint(
                {
                    "step": done,
                    "config": self.config.digest(),
                    "objective": self.built.objective.state_dict(),
                    "optimizer": self.built.optimizer.state_dict(),
                    "precision": self.fabric.strategy.precision.state_dict(),
                    "rng": states,
                    "history": self.history,
                    "seconds": self.elapsed(),
                }
            )

    def _rng_states(self) -> list[dict[str, Tensor]]:
        """The random generators of every process: dropout goes on where it was."""
        state = {"cpu": torch.get_rng_state()}
        if self.fabric.device.type == "cuda":
            state["cuda"] = torch.cuda.get_rng_state(self.fabric.device)
        if self.fabric.world_size == 1:
            return [state]
        states: list[Any] = [None] * self.fabric.world_size
        torch.distributed.all_gather_object(states, state)
        return states

    def resume(self) -> int:
        """Take up an unfinished run of the same config; the number of steps done."""
        if self.recipe.keep not in ("last", *VALIDATORS):
            known = ", ".join(("last", *VALIDATORS))
            raise InputError(f"keep is {self.recipe.keep!r}; it must be one of {known}")
        if self.path is None:
            return 0
        state = RunFolder(self.path).load_checkpoint()
        if state is None:
            if self.folder:
                self.folder.truncate_log(-1)
                self.folder.write_json("config.json", self.config.to_json())
            return 0
        if state["config"] != self.config.digest():
            raise InputError(
                f"{self.path} holds an unfinished run of another configuration; "
                "finish or remove it, or choose another folder"
            )
        self.built.objective.load_state_dict(state["objective"])
        self.built.optimizer.load_state_dict(state["optimizer"])
        self.fabric.strategy.precision.load_state_dict(state["precision"])
        mine = state["rng"][self.fabric.global_rank]
        torch.set_rng_state(mine["cpu"])
        if "cuda" in mine:
            torch.cuda.set_rng_state(mine["cuda"], self.fabric.device)
        self.history, self.seconds = state["history"], state["seconds"]
        if self.folder:
            self.folder.truncate_log(state["step"])
        return int(state["step"])

    def elapsed(self) -> float:
        return self.seconds + time.monotonic() - self.started

    def finish(self) -> Trained:
        """Write weights, predictions and, last, the result."""
        if self.folder and self.recipe.keep != "last":
            self.built.load_state(self.folder.load_tensors("model.safetensors"))
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
            self._write(predictions, result)
        return Trained(self.built, predictions, result)

    def _write(self, predictions: Predictions, result: dict[str, Any]) -> None:
        assert self.folder is not None
        if self.recipe.keep == "last":
            self.folder.save_tensors("model.safetensors", self.built.state())
        names = [self.task.target.identity(i) for i in range(len(self.task.target))]
        self.folder.save_tensors(
            "predictions.safetensors",
            {"probs": predictions.log_probs.exp(), "labels": predictions.labels},
            {
                "samples": json.dumps(names),
                "classes": json.dumps(list(self.task.classes)),
            },
        )
        self.folder.write_json("result.json", result)
        self.folder.remove_checkpoint()
