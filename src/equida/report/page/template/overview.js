"use strict";
/* What compares all runs: the balance plots and the evaluations while training. */
const hiddenSystems = new Set();
const taskNames = data.tasks;
const scored = data.runs.filter((run) => run.last.score !== null);
const nameOf = (figure) => data.figures[figure].name;
const figureText = (figure, value, digits = 1) => (data.figures[figure].percent ? percent(value, digits) : decimal(value));

function systemsOf(runs) { return [...new Set(runs.map((run) => run.system))].sort((a, b) => a - b); }

/* The systems of some runs as buttons; a hidden one is hidden from all plots of this part. */
function drawLegend(id, runs) {
  const buttons = systemsOf(runs).map((system) => {
    const button = make("button", null, { type: "button", "aria-pressed": String(!hiddenSystems.has(system)) });
    button.append(mark(system), data.systems[system].label);
    button.addEventListener("click", () => {
      const place = [...byId(id).children].indexOf(button);
      hiddenSystems.has(system) ? hiddenSystems.delete(system) : hiddenSystems.add(system);
      if (byId("balance")) drawBalance();
      drawTraining();
      byId(id).children[place].focus();
    });
    return button;
  });
  byId(id).replaceChildren(...buttons);
}

function runLines(run) {
  return [
    data.systems[run.system].label, `${taskNames[run.task]}, seed ${run.seed}`,
    `accuracy ${percent(run.last.score, 2)}`, ...data.measures.map((figure) => `${nameOf(figure)} ${figureText(figure, run.last[figure], 2)}`),
  ];
}

function scatter(figure) {
  const wanted = byId("balance-task").value;
  const runs = scored.filter((run) => !hiddenSystems.has(run.system) && (wanted === "all" || run.task === Number(wanted)));
  const traces = systemsOf(runs).map((system) => {
    const mine = runs.filter((run) => run.system === system);
    return {
      type: "scatter", mode: "markers", x: mine.map((run) => run.last[figure]), y: mine.map((run) => 100 * run.last.score), customdata: mine.map((run) => run.number),
      marker: { color: colourOf(system), symbol: data.systems[system].marker, size: 10, opacity: 0.85, line: { width: 1.5, color: colourOf(system) } },
    };
  });
  plot(`plot-${figure}`, traces, { xaxis: { title: { text: nameOf(figure) } }, yaxis: { title: { text: "accuracy in %" } } }, (point) => ({ lines: runLines(runOf(point.customdata)) }), (point) => chooseRun(point.customdata, true));
}

const runOf = (number) => data.runs[number];

function drawBalance() {
  drawLegend("legend", scored);
  data.measures.forEach(scatter);
}

/* One line: the mean of some runs of a system, over the steps that all of them were evaluated at. */
function curve(runs, figure, share) {
  const at = runs.map((run) => new Map(run.curves.evaluated.map((step, i) => [step, run.curves.figures[figure][i]])));
  const known = (step) => at.every((values) => (values.get(step) ?? null) !== null);
  const steps = runs[0].curves.evaluated.filter(known);
  const mean = (step) => at.reduce((sum, values) => sum + values.get(step), 0) / at.length;
  const { system, number } = runs[0];
  return {
    type: "scatter", mode: steps.length > 40 ? "lines" : "lines+markers", x: steps, y: steps.map((step) => share * mean(step)),
    customdata: steps.map((step) => ({ system, number, seeds: runs.map((run, i) => [run.seed, share * at[i].get(step)]) })),
    line: { color: colourOf(system), width: 1.6 }, marker: { color: colourOf(system), symbol: data.systems[system].marker, size: 6 },
  };
}

function drawTraining() {
  const task = Number(byId("training-task").value);
  const figure = byId("training-figure").value;
  const all = data.runs.filter((run) => run.task === task && run.curves.figures[figure]);
  const runs = all.filter((run) => !hiddenSystems.has(run.system));
  const averaged = byId("training-lines").value === "mean";
  byId("training-caption").textContent = `${data.figures[figure].title}, ${taskNames[task]}${averaged ? ", mean over seeds" : ""}`;
  drawLegend("training-legend", all);
  if (!all.length) return absent("plot-training", "No run of this task has recorded this figure.");
  const share = data.figures[figure].percent ? 100 : 1;
  const shown = (value) => (share === 100 ? value.toFixed(2) + " %" : value.toFixed(3));
  const groups = averaged ? systemsOf(runs).map((system) => runs.filter((run) => run.system === system)) : runs.map((run) => [run]);
  const traces = groups.map((group) => curve(group, figure, share));
  plot("plot-training", traces, { xaxis: { title: { text: "step" } }, yaxis: { title: { text: share === 100 ? "%" : "" } } }, (point) => {
    const { system, seeds } = point.customdata;
    const each = seeds.map(([seed, value]) => `seed ${seed}: ${shown(value)}`);
    const mean = seeds.length > 1 ? [`mean of ${seeds.length} seeds: ${shown(point.y)}`] : [];
    return { lines: [data.systems[system].label, `step ${point.x}`, ...mean, ...each] };
  }, (point) => chooseRun(point.customdata.number, true));
}

if (byId("balance")) {
  const labelled = [...new Set(scored.map((run) => run.task))].sort((a, b) => a - b);
  options(byId("balance-task"), ["all tasks", ...labelled.map((task) => taskNames[task])], ["all", ...labelled]);
  byId("balance-task").addEventListener("change", drawBalance);
  draw("balance", drawBalance);
}
if (data.runs.length) {
  const figures = Object.keys(data.figures).filter((name) => data.runs.some((run) => run.curves.figures[name]));
  const tasks = [...new Set(data.runs.map((run) => run.task))].sort((a, b) => a - b);
  options(byId("training-task"), tasks.map((task) => taskNames[task]), tasks);
  options(byId("training-figure"), figures.map(nameOf), figures);
  byId("training-task").addEventListener("change", drawTraining);
  byId("training-figure").addEventListener("change", drawTraining);
  byId("training-lines").addEventListener("change", drawTraining);
  const places = new Set(data.runs.map((run) => `${run.system} ${run.task}`));
  if (places.size === data.runs.length) {
    byId("training-lines").value = "each";
    byId("training-lines").closest("p").hidden = true;
  }
  draw("training", drawTraining);
}
