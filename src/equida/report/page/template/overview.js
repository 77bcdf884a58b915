"use strict";
/* What compares all runs: the balance plots and the evaluations while training. */
const hiddenSystems = new Set();
const taskNames = data.tasks.map((task) => (data.benchmarks > 1 ? task.benchmark + ": " : "") + task.name);
const scored = data.runs.filter((run) => run.last.accuracy !== null);

const MARKS = {
  circle: "M6 1a5 5 0 1 0 .01 0z", square: "M1.5 1.5h9v9h-9z", diamond: "M6 0l6 6-6 6-6-6z",
  "triangle-up": "M6 .5l6 10.5H0z", "triangle-down": "M6 11.5L0 1h12z", cross: "M4 0h4v4h4v4H8v4H4V8H0V4h4z",
  x: "M2.5 0L6 3.5 9.5 0 12 2.5 8.5 6 12 9.5 9.5 12 6 8.5 2.5 12 0 9.5 3.5 6 0 2.5z",
  star: "M6 0l1.8 4H12L8.6 6.8 10 11.5 6 8.6 2 11.5 3.4 6.8 0 4h4.2z",
  pentagon: "M6 .5l6 4.4-2.3 6.9H2.3L0 4.9z", hexagon: "M3 .8h6L12 6 9 11.2H3L0 6z",
};

function mark(system) {
  const kind = data.systems[system].marker;
  const open = kind.endsWith("-open");
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  svg.setAttribute("viewBox", "0 0 12 12");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", MARKS[kind.replace("-open", "")]);
  path.setAttribute("fill", open ? "none" : colourOf(system));
  path.setAttribute("stroke", colourOf(system));
  path.setAttribute("stroke-width", open ? "2" : "0");
  svg.append(path);
  return svg;
}

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
