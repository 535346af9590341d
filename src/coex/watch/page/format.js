"use strict";
// Words for numbers, and small elements. Preact sets every string as text: nothing that comes from a run is markup.

const { h, render, Component } = preact;
const isNumber = Number.isFinite;

function short(value, figures = 3) {  // 0.95642 → 0.956
  return String(Number(value.toPrecision(figures))).replace("-", "−");
}

function whole(value) {
  return isNumber(value) ? Math.round(value).toLocaleString("en") : "–";
}

function number(value) {  // 11618.2 → 11,618
  return isNumber(value) && Math.abs(value) < 100 ? short(value) : whole(value);
}

function count(value, figures = 3) {  // 1234567 → 1.23M
  const [size, unit] = [[1e9, "B"], [1e6, "M"], [1e3, "k"]].find(([least]) => Math.abs(value) >= least) ?? [1, ""];
  return isNumber(value) ? short(value / size, figures) + unit : "–";
}

function ticks(values, gap) {  // of an axis, with as many figures as tell neighbours apart
  const figures = Math.ceil(Math.log10(Math.max(...values.map(Math.abs)) / gap)) + 2;
  return values.map((value) => count(value, Math.min(Math.max(figures, 3), 15)));
}

function plural(value, noun) {
  return `${whole(value)} ${noun}${value === 1 ? "" : "s"}`;
}

function duration(seconds) {  // 3723 → 1h02m
  if (!isNumber(seconds)) return "–";
  const rest = Math.round(seconds), hours = Math.floor(rest / 3600), minutes = Math.floor(rest / 60) % 60;
  if (hours >= 48) return `${Math.round(hours / 24)} days`;
  if (hours) return `${hours}h${String(minutes).padStart(2, "0")}m`;
  return minutes ? `${minutes}m${String(rest % 60).padStart(2, "0")}s` : `${rest}s`;
}

function remaining(run) {
  const { step, steps_per_second: rate } = run.newest;
  return run.status === "running" && rate > 0 && step < run.total ? (run.total - step) / rate : null;
}

function roomsOf({ newest }) {
  return [newest["archive/rooms"], newest["rooms/true"], newest["rooms/clusters"]].find((rooms) => rooms > 0);
}

function Badge({ status }) {
  return h("span", { class: `badge ${status}` }, status);
}

function Table({ label, heads, children, ...properties }) {  // heads: [name, attributes, element instead of the name]
  const names = heads.map(([name, attributes, element]) => h("th", { scope: "col", ...attributes }, element ?? name));
  return h(
    "div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", properties, h("thead", {}, h("tr", {}, names)), h("tbody", {}, children)),
  );
}
