"use strict";
/* What all parts of the page share: the data, the theme, the tooltip, the tables. */
const data = JSON.parse(document.getElementById("data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const byId = (id) => document.getElementById(id);
const canHover = matchMedia("(hover: hover)").matches;
let printing = false;

function make(tag, text, attributes = {}) {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function theme() {
  const night = dark.matches && !printing;
  return night
    ? { night, ink: "#e9e6df", soft: "#a3a7ae", line: "#30343b", paper: "#14161a", accent: "#7db4ee", warm: "#f4824a", scale: [[0, "#1b1e23"], [0.5, "#2f6ba3"], [1, "#a9d3ff"]] }
    : { night, ink: "#1c1e22", soft: "#5a5f67", line: "#e4e0d6", paper: "#fcfbf8", accent: "#0b5fa5", warm: "#c8500a", scale: [[0, "#f6f3ec"], [0.5, "#6d9fcc"], [1, "#083d6e"]] };
}

const colourOf = (system) => data.systems[system][theme().night ? "dark" : "light"];
const percent = (value, digits = 1) => (value === null || value === undefined ? "–" : (100 * value).toFixed(digits) + " %");
const decimal = (value) => (value === null || value === undefined ? "–" : value.toFixed(3));

/* Plotly reads a few HTML tags in its texts; names of classes are plain text. */
function plain(text, most = 24) {
  const letters = Array.from(String(text).replace(/[\u0000-\u001f\u007f\u2028\u2029]/g, " "));
  const cut = letters.length > most ? letters.slice(0, most - 1).join("") + "…" : letters.join("");
  return cut.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

const tip = byId("tip");
function showTip(lines, x, y, picture) {
  tip.replaceChildren();
  if (picture !== undefined && picture !== null) tip.append(pictureOf(picture));
  for (const line of lines) tip.append(make("span", line));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const width = document.documentElement.clientWidth;
  const left = Math.max(8, Math.min(x + 14, width - box.width - 8));
  const top = y + 18 + box.height > innerHeight ? y - box.height - 12 : y + 18;
  tip.style.left = left + "px";
  tip.style.top = Math.max(8, top) + "px";
}
function hideTip() { tip.hidden = true; }

function pictureOf(number) {
  const address = data.pictures[number];
  const kind = address.startsWith("data:image/png") ? "small-array" : "photo";
  return make("img", null, { src: address, class: kind, alt: "" });
}

/* Plots: each is a function that draws itself again when the theme, the width or its input changes. */
const drawings = new Map();
function draw(id, make) { drawings.set(id, make); make(); }
function redraw() { for (const make of drawings.values()) make(); }

function layout(more) {
  const t = theme();
  const axis = { gridcolor: t.line, zerolinecolor: t.line, linecolor: t.line, tickcolor: t.line, fixedrange: true, automargin: true };
  const { xaxis = {}, yaxis = {}, ...rest } = more;
  return {
    /* Paper is narrower than the window that the plots were drawn for. */
    ...(printing ? { width: 660, autosize: false } : { autosize: true }),
    margin: { l: 48, r: 12, t: 8, b: 44 }, height: 340, dragmode: false, hovermode: "closest", showlegend: false,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", size: 12, color: t.soft },
    xaxis: { ...axis, ...xaxis }, yaxis: { ...axis, ...yaxis }, ...rest,
  };
}

/* `tooltip(point)` gives the lines and the picture of the tooltip; `picked(point)` is what a click does. */
function plot(id, traces, more, tooltip, picked) {
  const place = byId(id);
  if (!place.classList.contains("js-plotly-plot")) place.replaceChildren();
  for (const trace of traces) trace.hoverinfo = "none";
  Plotly.react(place, traces, layout(more), { displayModeBar: false, responsive: true, doubleClick: false });
  place.removeAllListeners("plotly_hover");
  place.removeAllListeners("plotly_unhover");
  place.removeAllListeners("plotly_click");
  place.on("plotly_hover", (event) => {
    const { lines, picture } = tooltip(event.points[0]);
    showTip(lines, event.event.clientX, event.event.clientY, picture);
  });
  place.on("plotly_unhover", hideTip);
  if (picked && canHover) place.on("plotly_click", (event) => { hideTip(); picked(event.points[0]); });
}

function absent(id, sentence) {
  const place = byId(id);
  if (place.classList.contains("js-plotly-plot")) Plotly.purge(place);
  place.classList.remove("js-plotly-plot");
  place.replaceChildren(make("p", sentence, { class: "absent" }));
}

function options(select, names, values) {
  select.replaceChildren(...names.map((name, i) => make("option", name, { value: values[i] })));
}

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

function paintMarks() {
  for (const place of document.querySelectorAll(".mark")) place.replaceChildren(mark(Number(place.dataset.system)));
}

function sortTable(table, column, head) {
  const order = head.getAttribute("aria-sort");
  const first = column === 0 ? "ascending" : "descending";
  const next = order === "none" ? first : order === "ascending" ? "descending" : "ascending";
  for (const other of table.querySelectorAll("th[aria-sort]")) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", next);
  const value = (row) => row.cells[column].dataset.value;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  rows.sort((a, b) => {
    if (value(a) === "" || value(b) === "") return (value(a) === "") - (value(b) === "");
    return (next === "ascending" ? 1 : -1) * (Number(value(a)) - Number(value(b)));
  });
  body.append(...rows);
}

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = Array.from(table.querySelectorAll("th[aria-sort]"));
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => sortTable(table, column, head)));
}

for (const cell of document.querySelectorAll("td[tabindex]")) {
  const lines = Array.from(cell.querySelectorAll(".more span"), (span) => span.textContent);
  const show = () => {
    const box = cell.getBoundingClientRect();
    showTip(lines, box.left, box.bottom - 12);
  };
  cell.addEventListener("mouseenter", show);
  cell.addEventListener("focus", show);
  cell.addEventListener("mouseleave", hideTip);
  cell.addEventListener("blur", hideTip);
}
addEventListener("scroll", hideTip, { passive: true });

/* A table that is wider than its place says so, and fades on the side where it goes on. */
function markOverflow() {
  for (const place of document.querySelectorAll(".scroll")) {
    const hidden = place.scrollWidth - place.clientWidth;
    place.classList.toggle("wider", hidden > 1);
    place.classList.toggle("goes-on", place.scrollLeft < hidden - 1);
  }
}
for (const place of document.querySelectorAll(".scroll")) place.addEventListener("scroll", () => { hideTip(); markOverflow(); }, { passive: true });
addEventListener("resize", markOverflow);
addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });

const selection = byId("show-selection");
if (selection) {
  selection.addEventListener("change", () => {
    for (const part of document.querySelectorAll("#results [data-selection]")) part.hidden = part.dataset.selection !== selection.value;
    markOverflow();
  });
}

dark.addEventListener("change", () => { paintMarks(); redraw(); });
addEventListener("beforeprint", () => { printing = true; paintMarks(); redraw(); });
addEventListener("afterprint", () => { printing = false; paintMarks(); redraw(); });
paintMarks();
markOverflow();
