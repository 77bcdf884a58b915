"use strict";
/* What compares all runs: the balance plots and the evaluations while training. */
const hiddenSystems = new Set();
const taskNames = data.tasks.map((task) => (data.benchmarks > 1 ? task.benchmark + ": " : "") + task.name);
const scored = data.runs.filter((run) => run.last.accuracy !== null);

function systemsOf(runs) { return [...new Set(runs.map((run) => run.system))].sort((a, b) => a - b); }

function drawLegend() {
  const place = byId("legend");
  place.replaceChildren(...systemsOf(scored).map((system) => {
    const button = make("button", null, { type: "button", "aria-pressed": String(!hiddenSystems.has(system)) });
    button.append(mark(system), data.systems[system].label);
    button.addEventListener("click", () => {
      hiddenSystems.has(system) ? hiddenSystems.delete(system) : hiddenSystems.add(system);
      button.setAttribute("aria-pressed", String(!hiddenSystems.has(system)));
      drawBalance();
    });
    return button;
  }));
}

function runLines(run) {
  return [
    data.systems[run.system].label, `${taskNames[run.task]}, seed ${run.seed}`,
    `accuracy ${percent(run.last.accuracy, 2)}`, `equity ${decimal(run.last.equity)}`, `discriminability ${decimal(run.last.discriminability)}`,
  ];
}

function scatter(id, figure, title) {
  const wanted = byId("balance-task").value;
  const runs = scored.filter((run) => !hiddenSystems.has(run.system) && (wanted === "all" || run.task === Number(wanted)));
  const traces = systemsOf(runs).map((system) => {
    const mine = runs.filter((run) => run.system === system);
    return {
      type: "scatter", mode: "markers", x: mine.map((run) => run.last[figure]), y: mine.map((run) => 100 * run.last.accuracy), customdata: mine.map((run) => run.number),
      marker: { color: colourOf(system), symbol: data.systems[system].marker, size: 10, opacity: 0.85, line: { width: 1.5, color: colourOf(system) } },
    };
  });
  plot(id, traces, { xaxis: { title: { text: title } }, yaxis: { title: { text: "accuracy in %" } } }, (point) => ({ lines: runLines(runOf(point.customdata)) }), (point) => chooseRun(point.customdata, true));
}

const runOf = (number) => data.runs.find((run) => run.number === number);

function drawBalance() {
  drawLegend();
  scatter("plot-equity", "equity", "equity");
  scatter("plot-discriminability", "discriminability", "discriminability");
}

function drawTraining() {
  const task = Number(byId("training-task").value);
  const figure = byId("training-figure").value;
  const runs = data.runs.filter((run) => run.task === task && run.curves.figures[figure]);
  byId("training-caption").textContent = `${figure.replaceAll("_", " ")}, ${taskNames[task]}`;
  byId("training-legend").replaceChildren(...systemsOf(runs).map((system) => {
    const item = make("span", null, { class: "item" });
    item.append(mark(system), data.systems[system].label);
    return item;
  }));
  const share = figure.includes("accuracy") ? 100 : 1;
  const traces = runs.map((run) => ({
    type: "scatter", mode: run.curves.evaluated.length > 40 ? "lines" : "lines+markers", x: run.curves.evaluated,
    y: run.curves.figures[figure].map((value) => (value === null ? null : share * value)), customdata: run.curves.evaluated.map(() => run.number),
    line: { color: colourOf(run.system), width: 1.6 }, marker: { color: colourOf(run.system), symbol: data.systems[run.system].marker, size: 6 },
  }));
  if (!traces.length) return absent("plot-training", "No run of this task has this figure: it needs target labels.");
  plot("plot-training", traces, { xaxis: { title: { text: "step" } }, yaxis: { title: { text: share === 100 ? "%" : "" } } }, (point) => {
    const run = runOf(point.customdata);
    const value = share === 100 ? point.y.toFixed(2) + " %" : point.y.toFixed(3);
    return { lines: [`${data.systems[run.system].label}, seed ${run.seed}`, `step ${point.x}: ${value}`] };
  }, (point) => chooseRun(point.customdata, true));
}

if (byId("balance")) {
  const labelled = [...new Set(scored.map((run) => run.task))].sort((a, b) => a - b);
  options(byId("balance-task"), ["all tasks", ...labelled.map((task) => taskNames[task])], ["all", ...labelled]);
  byId("balance-task").addEventListener("change", drawBalance);
  draw("balance", drawBalance);
}
if (data.runs.length) {
  const figures = ["accuracy", "mean_class_accuracy", "equity", "discriminability", "source_accuracy"].filter((name) => data.runs.some((run) => run.curves.figures[name]));
  const tasks = [...new Set(data.runs.map((run) => run.task))].sort((a, b) => a - b);
  options(byId("training-task"), tasks.map((task) => taskNames[task]), tasks);
  options(byId("training-figure"), figures.map((name) => name.replaceAll("_", " ")), figures);
  byId("training-task").addEventListener("change", drawTraining);
  byId("training-figure").addEventListener("change", drawTraining);
  draw("training", drawTraining);
}
