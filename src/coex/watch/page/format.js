"use strict";
// Numbers and elements. What comes from a run is only ever set as text.

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

function number(value) {  // 11618.2 → 11,618; 0.9564 → 0.956
  if (!isNumber(value)) return "–";
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(3))).replace("-", "−");
}

function count(value) {  // 1234567 → 1.23M
  if (!isNumber(value)) return "–";
  for (const [size, unit] of [[1e9, "B"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= size) return Number((value / size).toPrecision(3)) + unit;
  }
  return String(Number(value.toPrecision(3))).replace("-", "−");
}

function whole(value) {
  return isNumber(value) ? Math.round(value).toLocaleString("en") : "–";
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

// make("p", {class: "quiet", onclick: f}, "text", element, …): strings become text nodes, never markup.
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function remaining(run) {
  const { step, steps_per_second: rate } = run.newest;
  return run.status === "running" && rate > 0 && step < run.total ? (run.total - step) / rate : null;
}

function roomsOf(newest) {
  return [newest["archive/rooms"], newest["rooms/true"], newest["rooms/clusters"]].find((rooms) => rooms > 0);
}

function badge(status) {
  return make("span", { class: `badge ${status}` }, status);
}
