"use strict";
/* The panels of the chosen run. */
let current = data.runs[0];
const narrow = () => innerWidth < 560;
const MOST_CLASSES = data.most_classes;

/* The part of the map that is seen; the whole one leaves touches to the page, for scrolling. */
const WHOLE = [-0.04, 1.04];
let mapView = { run: null, x: WHOLE, y: WHOLE };
const isWhole = () => mapView.x[1] - mapView.x[0] > 1.07 && mapView.y[1] - mapView.y[0] > 1.07;

function chooseRun(number, jump) {
  current = runOf(number) ?? current;
  byId("run-task").value = current.task;
  fillSystems();
  byId("run-system").value = current.system;
  fillSeeds();
  byId("run-seed").value = current.number;
  drawRun();
  if (jump) byId("run").scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

function fillSystems() {
  const systems = systemsOf(data.runs.filter((run) => run.task === Number(byId("run-task").value)));
  options(byId("run-system"), systems.map((system) => data.systems[system].label), systems);
}

function candidates() {
  return data.runs.filter((run) => run.task === Number(byId("run-task").value) && run.system === Number(byId("run-system").value));
}

function fillSeeds() {
  const runs = candidates();
  options(byId("run-seed"), runs.map((run) => String(run.seed)), runs.map((run) => run.number));
}

function drawRun() {
  hideTip();
  const run = current;
  byId("run-title").textContent = `${data.systems[run.system].label} on ${taskNames[run.task]}, seed ${run.seed}`;
  const facts = [["accuracy", percent(run.last.score)], ...data.measures.map((figure) => [nameOf(figure), figureText(figure, run.last[figure])]), ["steps", String(run.last.step)], ["time", run.seconds < 100 ? run.seconds.toFixed(0) + " s" : (run.seconds / 60).toFixed(1) + " min"]];
  byId("run-figures").replaceChildren(...facts.map(([name, value]) => {
    const pair = make("div");
    pair.append(make("dt", name), make("dd", value));
    return pair;
  }));
  byId("run-idea").textContent = data.systems[run.system].idea;
  const notes = [];
  if (run.kept) notes.push(`The panels on classes and samples show the weights at the step that ${run.kept} picked.`);
  if (!run.confusion) notes.push("The target of this run has no labels, so accuracy, confusions, changes by class and mistakes are missing.");
  if (run.trouble) notes.push(run.trouble);
  notes.push(...run.remarks.map((remark) => remark[0].toUpperCase() + remark.slice(1) + "."));
  byId("run-note").textContent = notes.join(" ");
  byId("run-note").hidden = !notes.length;
  byId("classes-and-map").classList.toggle("pair", Boolean(run.confusion) && run.classes.length <= 12);
  drawTerms(run); drawEvaluations(run); drawSizes(run); drawChange(run); drawConfusion(run); drawMap(run); drawMistakes(run); drawPicks(run);
}

/* English ordinals: 2nd, 3rd, 11th. */
const ordinal = (n) => n + (Math.floor((n % 100) / 10) === 1 ? "th" : ["th", "st", "nd", "rd"][n % 10] ?? "th");

/* A line needs two points; a single one is a marker. */
const lineMode = (values) => (values.filter((value) => value !== null).length > 1 ? "lines" : "markers");

function drawTerms(run) {
  const { logged, thinned } = run.curves;
  byId("terms-note").textContent = thinned > 1 ? `The plot shows every ${ordinal(thinned)} logged point, ${run.curves.steps.length} of ${logged}.` : "";
  const names = Object.keys(run.curves.terms);
  if (!names.length) return absent("plot-terms", "The log of this run has no loss terms.");
  const t = theme();
  const more = { height: Math.max(300, 110 * names.length + 60), annotations: [], xaxis: { title: { text: "step" }, anchor: "y" + (names.length > 1 ? names.length : "") } };
  const gap = 0.09;
  const height = (1 - gap * (names.length - 1)) / names.length;
  const traces = names.map((name, i) => {
    const top = 1 - i * (height + gap);
    const axis = { domain: [Math.max(0, top - height), top], gridcolor: t.line, zerolinecolor: t.line, fixedrange: true, automargin: true, nticks: 4 };
    more[i ? `yaxis${i + 1}` : "yaxis"] = axis;
    more.annotations.push({ text: plain(name.replaceAll("_", " ")), x: 1, y: top, xref: "paper", yref: "paper", xanchor: "right", yanchor: "top", showarrow: false, font: { color: t.ink, size: 12 } });
    return { type: "scatter", mode: lineMode(run.curves.terms[name]), x: run.curves.steps, y: run.curves.terms[name], marker: { size: 8 }, yaxis: i ? `y${i + 1}` : "y", line: { color: colourOf(run.system), width: 1.8 }, name: plain(name) };
  });
  plot("plot-terms", traces, more, (point) => ({ lines: [`step ${point.x}`, `${names[point.curveNumber].replaceAll("_", " ")} ${point.y}`] }));
}

function drawEvaluations(run) {
  const { evaluated, figures } = run.curves;
  const names = Object.keys(figures);
  if (!names.length) return absent("plot-evaluations", "The log of this run has no evaluations.");
  const t = theme();
  const dashes = ["dash", "dot", "dashdot", "longdash", "longdashdot"];
  const look = (name) => {
    if (name === run.curves.metric) return [colourOf(run.system), "solid", 2.4];
    if (name === "source_accuracy") return [t.night ? "#6a717b" : "#b3ac9d", "solid", 1.6];
    const place = data.measures.indexOf(name);
    return [place % 2 ? t.soft : t.accent, dashes[place % dashes.length], 1.6];
  };
  const traces = names.map((name) => {
    const [colour, dash, width] = look(name);
    return { type: "scatter", mode: lineMode(figures[name]), marker: { size: 8, color: colour }, name: nameOf(name), x: evaluated, y: figures[name], line: { color: colour, dash, width } };
  });
  const main = run.confusion ? "score" : data.measures[0];
  const picks = run.picks.filter((pick) => pick.key !== "last");
  traces.push({
    type: "scatter", mode: "markers", showlegend: false, x: picks.map((pick) => pick.step), y: picks.map((pick) => pick[main]),
    marker: { size: picks.map((pick) => (pick.key === "oracle" ? 14 : 9)), symbol: picks.map((pick) => (pick.key === "oracle" ? "star" : "circle-open")), color: t.ink, line: { width: 1.6, color: t.ink } },
  });
  plot("plot-evaluations", traces, { showlegend: true, legend: { orientation: "h", y: -0.22, x: 0 }, margin: { l: 40, r: 12, t: 8, b: 60 }, xaxis: { title: { text: "step", standoff: 4 } } }, (point) => {
    if (point.curveNumber === names.length) {
      const here = picks.filter((pick) => pick.step === point.x).map((pick) => pick.title);
      const value = main === "score" ? `accuracy ${percent(point.y, 2)}` : `${nameOf(main)} ${figureText(main, point.y, 2)}`;
      return { lines: [`step ${point.x}: ${value}`, "picked by " + here.join(", ")] };
    }
    const name = names[point.curveNumber];
    return { lines: [`step ${point.x}`, `${nameOf(name)} ${figureText(name, point.y, 2)}`] };
  });
}

/* The classes to draw, the first at the top; of very many those that differ the most. */
function classesBy(differences) {
  const all = differences.map((_, i) => i);
  if (all.length <= MOST_CLASSES) return all.reverse();
  return all.sort((a, b) => Math.abs(differences[b] ?? 0) - Math.abs(differences[a] ?? 0) || a - b).slice(0, MOST_CLASSES).sort((a, b) => b - a);
}

function classAxis(run, chosen) {
  return { tickvals: chosen.map((_, i) => i), ticktext: chosen.map((c) => plain(run.classes[c], narrow() ? 14 : 24)), range: [-0.7, chosen.length - 0.3], showgrid: false, zeroline: false, tickfont: { size: chosen.length > 20 ? 10 : 12 } };
}
const classHeight = (count) => Math.max(240, 70 + (count > 20 ? 15 : 24) * count);

function drawSizes(run) {
  if (!run.predicted) return absent("plot-sizes", "The predictions of this run cannot be read.");
  const t = theme();
  const known = Boolean(run.true);
  const total = run.predicted.reduce((sum, n) => sum + n, 0);
  const truth = run.true ?? run.predicted.map(() => total / run.classes.length);
  const chosen = classesBy(run.predicted.map((n, c) => n - truth[c]));
  const cut = chosen.length < run.classes.length ? `; the ${chosen.length} of ${run.classes.length} classes that differ the most` : "";
  byId("sizes-note").textContent = `dots are predicted sizes, rings are ${known ? "true sizes" : "the sizes of equal classes"}${run.shares.estimated ? ", strokes are sizes estimated without labels" : ""}${run.shares.aim ? ", diamonds are sizes that the method aims at" : ""}${cut}`;
  const links = { type: "scatter", mode: "lines", x: [], y: [], line: { color: t.line, width: 3 } };
  chosen.forEach((c, i) => { links.x.push(truth[c], run.predicted[c], null); links.y.push(i, i, null); });
  const dots = (values, marker) => ({ type: "scatter", mode: "markers", x: chosen.map((c) => values[c]), y: chosen.map((_, i) => i), marker });
  const traces = [links, dots(truth, { symbol: "circle-open", size: 11, color: t.ink, line: { width: 1.6 } }), dots(run.predicted, { size: 8, color: colourOf(run.system) })];
  const sizes = Object.fromEntries(Object.entries(run.shares).map(([name, shares]) => [name, shares.map((share) => share * total)]));
  if (sizes.aim) traces.push(dots(sizes.aim, { symbol: "diamond-open", size: 7, color: t.ink }));
  if (sizes.estimated) traces.push(dots(sizes.estimated, { symbol: "line-ns-open", size: 12, color: t.ink, line: { width: 1.6 } }));
  plot("plot-sizes", traces, { height: classHeight(chosen.length), xaxis: { title: { text: "samples" }, rangemode: "tozero" }, yaxis: classAxis(run, chosen) }, (point) => {
    const c = chosen[Math.round(point.y)];
    return { lines: [run.classes[c], `predicted ${run.predicted[c]}`, ...(known ? [`true ${truth[c]}`] : []), ...(sizes.estimated ? [`estimated ${sizes.estimated[c].toFixed(1)}`] : []), ...(sizes.aim ? [`aimed at ${sizes.aim[c].toFixed(1)}`] : [])] };
  });
}

function drawChange(run) {
  byId("panel-change").hidden = !run.confusion;
  if (!run.confusion) return;
  byId("change-note").textContent = "";
  if (!run.change) return absent("plot-change", data.systems[run.system].method === "source_only" ? "This run is source only itself." : "There is no finished source-only run of this task to compare with.");
  const t = theme();
  const chosen = classesBy(run.change);
  const cut = chosen.length < run.classes.length ? `; the ${chosen.length} of ${run.classes.length} classes that change the most` : "";
  byId("change-note").textContent = `difference of each class's accuracy, in points, from source only with seed ${run.baseline_seed}${cut}`;
  const values = chosen.map((c) => (run.change[c] === null ? null : 100 * run.change[c]));
  const trace = { type: "bar", orientation: "h", x: values, y: chosen.map((_, i) => i), width: 0.62, marker: { color: values.map((value) => (value < 0 ? t.warm : t.accent)) } };
  plot("plot-change", [trace], { height: classHeight(chosen.length), xaxis: { title: { text: "points" }, zerolinecolor: t.soft }, yaxis: classAxis(run, chosen) }, (point) => {
    const c = chosen[Math.round(point.y)];
    return { lines: [run.classes[c], `${point.x > 0 ? "+" : ""}${point.x.toFixed(1)} points`, `${run.true[c]} samples`] };
  });
}

function drawConfusion(run) {
  byId("panel-confusion").hidden = !run.confusion;
  if (!run.confusion) return;
  const t = theme();
  const count = run.classes.length;
  const few = count <= 12;
  const counts = run.classes.map(() => new Array(count).fill(0));
  for (const [row, column, n] of run.confusion) counts[row][column] = n;
  const shares = counts.map((row, c) => row.map((n) => (run.true[c] ? (100 * n) / run.true[c] : null)));
  const trace = { type: "heatmap", z: shares, zmin: 0, zmax: 100, colorscale: t.scale, xgap: few ? 1 : 0, ygap: few ? 1 : 0, showscale: !narrow(), colorbar: { thickness: 10, outlinewidth: 0, ticksuffix: " %", len: 0.8 } };
  if (few) Object.assign(trace, { text: counts.map((row) => row.map((n) => (n ? String(n) : ""))), texttemplate: "%{text}", textfont: { size: narrow() ? 9 : 11 } });
  const width = byId("plot-confusion").clientWidth;
  const labels = count <= (narrow() ? 40 : 70);
  byId("confusion-note").textContent = labels ? "" : "; point at a cell or tap it to see its classes";
  const size = narrow() ? (count > 12 ? 8 : 10) : count > 40 ? 8 : count > 20 ? 10 : 12;
  const axis = { tickvals: run.classes.map((_, c) => c), ticktext: run.classes.map((name) => plain(name, narrow() ? 12 : 20)), showticklabels: labels, showgrid: false, zeroline: false, ticklen: 2, tickfont: { size } };
  const longest = Math.max(...axis.ticktext.map((text) => text.length));
  const upright = few && !narrow() && longest * count * size < width;
  const below = { ...axis, title: { text: "predicted" }, tickangle: upright ? 0 : -90 };
  plot("plot-confusion", [trace], { height: Math.min(Math.max(width * 0.85, narrow() && !few ? 430 : 340), few ? 480 : 820), ...(narrow() ? { margin: { l: 8, r: 4, t: 4, b: 8 } } : {}), xaxis: below, yaxis: { ...axis, autorange: "reversed", title: { text: "true" } } }, (point) => ({
    lines: [`true: ${run.classes[point.y]}`, `predicted: ${run.classes[point.x]}`, `${counts[point.y][point.x]} of ${run.true[point.y]} samples`],
  }));
}

const hue = (c, night) => `hsl(${(c * 137.508 + 20) % 360} ${night ? "55% 66%" : "58% 43%"})`;

/* The name of each class above most of its samples. */
function classLabels(run, map, classes) {
  const t = theme();
  const quantile = (values, share) => values.sort((a, b) => a - b)[Math.floor(values.length * share)];
  return run.classes.flatMap((name, c) => {
    const mine = map.x.map((_, i) => i).filter((i) => classes(i) === c);
    if (!mine.length) return [];
    return [{ text: plain(name, 16), x: quantile(mine.map((i) => map.x[i]), 0.5), y: quantile(mine.map((i) => map.y[i]), 0.85), yshift: 15, showarrow: false, font: { size: run.classes.length > 12 ? 10 : 13, color: t.ink }, bgcolor: t.night ? "rgba(20,22,26,.6)" : "rgba(252,251,248,.6)", borderpad: 0 }];
  });
}

function drawMap(run) {
  const map = run.map;
  byId("map-control").hidden = !map || !map.truth;
  byId("map-zoom").hidden = !map;
  if (!map) {
    byId("map-note").textContent = "";
    return absent("plot-map", data.map_note);
  }
  const t = theme();
  const pictures = map.pictures.some((picture) => picture !== null);
  byId("map-note").textContent = `t-SNE of the predicted probabilities of ${map.samples.length} of ${map.of} target samples. Samples that are predicted alike lie close together; those that would cover one another are moved a little apart.${map.truth ? " A cross is a mistake." : ""} Point at a sample to see its name${pictures ? " and picture" : ""}.${canHover ? " Drag over a part to enlarge it, and double-click to see all." : ""}`;
  const mode = map.truth ? byId("map-colour").value : "predicted";
  const right = (i) => map.truth[i] === map.predicted[i];
  const classes = (i) => (mode === "truth" ? map.truth[i] : map.predicted[i]);
  const colours = map.x.map((_, i) => (mode === "right" ? (right(i) ? t.accent : t.warm) : classes(i) < 0 ? t.soft : hue(classes(i), t.night)));
  if (mapView.run !== run.number) mapView = { run: run.number, x: WHOLE, y: WHOLE };
  const bare = { visible: false, fixedrange: false };
  const wrong = (i) => Boolean(map.truth) && map.truth[i] >= 0 && !right(i);
  const labels = mode === "right" || run.classes.length > (narrow() ? 12 : 40) ? [] : classLabels(run, map, classes);
  /* Mistakes are drawn last, so that nothing covers them. */
  const layer = (shown, marker) => ({ type: "scatter", mode: "markers", x: shown.map((i) => map.x[i]), y: shown.map((i) => map.y[i]), customdata: shown, marker: { ...marker, color: shown.map((i) => colours[i]) } });
  const all = map.x.map((_, i) => i);
  const small = narrow();
  const traces = [
    layer(all.filter((i) => !wrong(i)), { symbol: "circle", size: small ? 6 : 8, opacity: map.truth ? 0.6 : 0.85 }),
    layer(all.filter(wrong), { symbol: "x", size: small ? 8 : 10, line: { color: t.ink, width: small ? 0.6 : 1 } }),
  ];
  const drag = canHover ? "zoom" : isWhole() ? false : "pan";
  plot("plot-map", traces, { height: small ? 340 : 520, margin: { l: 4, r: 4, t: 18, b: 4 }, annotations: labels, dragmode: drag, xaxis: { ...bare, range: [...mapView.x] }, yaxis: { ...bare, range: [...mapView.y] } }, (point) => {
    const i = point.customdata;
    const lines = [map.samples[i], `predicted: ${run.classes[map.predicted[i]]}, ${percent(map.confidence[i])}`];
    if (map.truth) lines.push(`true: ${run.classes[map.truth[i]] ?? "unknown"}`);
    return { lines, picture: map.pictures[i] };
  });
  const place = byId("plot-map");
  place.removeAllListeners("plotly_relayout");
  place.removeAllListeners("plotly_doubleclick");
  place.on("plotly_relayout", () => { mapView.x = [...place.layout.xaxis.range]; mapView.y = [...place.layout.yaxis.range]; });
  place.on("plotly_doubleclick", () => lookAt(WHOLE, WHOLE));
}

function lookAt(x, y) {
  hideTip();
  Object.assign(mapView, { x, y });
  drawMap(current);
}

function zoom(factor) {
  const part = ([low, high]) => {
    const half = Math.min(0.54, ((high - low) * factor) / 2);
    const middle = half === 0.54 ? 0.5 : (low + high) / 2;
    return [middle - half, middle + half];
  };
  lookAt(part(mapView.x), part(mapView.y));
}

function drawMistakes(run) {
  byId("panel-mistakes").hidden = !run.mistakes;
  if (!run.mistakes) return;
  byId("mistakes-note").textContent = run.wrong ? `the ${run.mistakes.length} of ${run.wrong} wrong predictions that the run is surest of` : "this run made none";
  byId("mistakes").replaceChildren(...run.mistakes.map((one) => {
    const item = make("li");
    if (one.picture !== null) item.append(pictureOf(one.picture));
    item.append(make("b", `predicted: ${run.classes[one.predicted]}`), make("span", `${percent(one.confidence)} sure`, { class: "line" }), make("span", `true: ${run.classes[one.truth]}`, { class: "line" }), make("span", one.sample, { class: "name", title: one.sample }));
    return item;
  }));
}

function drawPicks(run) {
  byId("run-picks").tBodies[0].replaceChildren(...run.picks.map((pick) => {
    const row = make("tr");
    row.append(make("th", pick.title, { scope: "row" }));
    for (const text of [String(pick.step), percent(pick.score), ...data.measures.map((figure) => figureText(figure, pick[figure]))]) row.append(make("td", text, { class: "number" }));
    return row;
  }));
}

if (data.runs.length) {
  const tasks = [...new Set(data.runs.map((run) => run.task))].sort((a, b) => a - b);
  options(byId("run-task"), tasks.map((task) => taskNames[task]), tasks);
  const keep = (runs) => runs.find((run) => run.system === current.system && run.seed === current.seed) ?? runs.find((run) => run.system === current.system) ?? runs[0];
  byId("run-task").addEventListener("change", () => chooseRun(keep(data.runs.filter((run) => run.task === Number(byId("run-task").value))).number));
  byId("run-system").addEventListener("change", () => { const runs = candidates(); chooseRun((runs.find((run) => run.seed === current.seed) ?? runs[0]).number); });
  byId("run-seed").addEventListener("change", () => chooseRun(Number(byId("run-seed").value)));
  byId("map-in").addEventListener("click", () => zoom(0.5));
  byId("map-out").addEventListener("click", () => zoom(2));
  byId("map-all").addEventListener("click", () => lookAt(WHOLE, WHOLE));
  byId("map-colour").addEventListener("change", () => drawMap(current));
  chooseRun(data.first);
  drawings.set("run", drawRun);
  if (canHover) {
    for (const cell of document.querySelectorAll("td[data-run]")) cell.addEventListener("dblclick", () => chooseRun(Number(cell.dataset.run), true));
  }
  for (const cell of document.querySelectorAll("td[data-run]")) cell.addEventListener("keydown", (event) => { if (event.key === "Enter") chooseRun(Number(cell.dataset.run), true); });
}
