"use strict";
// Curves by uPlot: zoom by dragging or by keys, one cursor for all charts of a page, values beside the names.

const NUM_COLOURS = 8;
const charts = new Set();
const labels = [];  // of methods, in the order of their colours

function methodColour(label) {
  if (!labels.includes(label)) labels.push(label);
  return labels.indexOf(label) % NUM_COLOURS;
}

function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function fade(colour, share) {  // "#rrggbb" with an opacity
  return colour + Math.round(share * 255).toString(16).padStart(2, "0");
}

// series: [{label, colour (0–7), width, faint, dash, band: [low, high] as indices of data}]
class Chart {
  constructor({ title, unit, series, data, height = 190, sync = null, marks = [] }) {
    this.title = title;
    this.unit = unit;
    this.series = series;
    this.data = data;
    this.height = height;
    this.sync = sync;
    this.marks = marks;
    this.zoom = null;
    this.names = make("p", { class: "legend" });
    this.plot = make("div", { class: "plot", tabindex: "0", role: "img", onkeydown: (event) => this.onKey(event) });
    this.element = make(
      "figure", { class: "chart" },
      make("figcaption", {}, make("b", {}, title), " ", make("span", {}, unit)), this.names, this.plot,
    );
    charts.add(this);
    this.resizer = new ResizeObserver(() => this.resize());
    this.resizer.observe(this.plot);
  }

  setData(data) {
    this.data = data;
    if (!this.u) return;
    this.u.setData(data, !this.zoom);
    if (this.zoom) this.u.setScale("x", this.zoom);
    this.describe();
  }

  resize() {
    const width = this.plot.clientWidth;
    if (!width) return;
    if (this.u) this.u.setSize({ width, height: this.height });
    else this.draw(width);
  }

  redraw() {  // other colours
    if (this.u) this.u.destroy();
    this.u = null;
    this.resize();
  }

  draw(width) {
    const ink = cssColour("--quiet"), line = cssColour("--line"), card = cssColour("--card");
    const font = "11.5px system-ui, sans-serif";
    const axis = { stroke: ink, font, grid: { stroke: line, width: 1 }, ticks: { show: false } };
    const colour = (index) => cssColour(`--c${index}`);
    this.u = new uPlot({
      width, height: this.height, padding: [10, 12, 0, 0],
      cursor: {
        sync: this.sync ? { key: this.sync, setSeries: false } : undefined, y: false,
        drag: { x: true, y: false, setScale: true },
        points: { size: 7, fill: (u, i) => colour(this.series[i - 1].colour), stroke: card, width: 1.5 },
      },
      legend: { show: false },
      scales: { x: { time: false }, y: { range: (u, low, high) => this.range(low, high) } },
      axes: [
        { ...axis, size: 26, gap: 4, space: 60, values: (u, ticks) => ticks.map(count) },
        { ...axis, size: 46, gap: 5, space: 34, values: (u, ticks) => ticks.map((tick) => (this.isWhole() && tick % 1 ? "" : count(tick))) },
      ],
      series: [{}, ...this.series.map((part) => ({
        stroke: part.hidden ? "transparent" : fade(colour(part.colour), part.faint ? 0.28 : 1),
        width: part.width ?? 2, dash: part.dash, spanGaps: true,
        paths: part.dots ? () => null : undefined,
        points: { show: (u) => part.dots || (!part.hidden && u.data[0].length === 1), size: 5, fill: fade(colour(part.colour), 0.75), stroke: "transparent" },
      }))],
      bands: this.series.flatMap((part) => part.band ? [{ series: part.band, fill: fade(colour(part.colour), 0.16) }] : []),
      hooks: {
        draw: [(u) => this.drawMarks(u)],
        setCursor: [() => this.describe()],
        setScale: [(u, key) => { if (key === "x") this.onZoom(u); }],
      },
    }, this.data, this.plot);
    if (this.zoom) this.u.setScale("x", this.zoom);
    this.describe();
  }

  range(low, high) {
    if (!isNumber(low) || !isNumber(high)) return [0, 1];
    const marks = this.marks.map((mark) => mark.value).filter((value) => value <= 3 * high && value >= low);
    high = Math.max(high, ...marks);
    if (low > 0 && low < 0.6 * high) low = 0;
    const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
    return [low === 0 && !this.series.some((part) => part.dots) ? 0 : low - room, high + room];
  }

  isWhole() {  // counts have no ticks between them
    return this.data.slice(1).every((values) => values.every((value) => !isNumber(value) || Number.isInteger(value)));
  }

  drawMarks(u) {
    const scale = devicePixelRatio, { left, top, width } = u.bbox;
    const isInside = (mark) => mark.value <= u.scales.y.max, place = (mark) => u.valToPos(mark.value, "y", true);
    // Marks that lie beyond the plot are named below each other, and below a line at its top.
    let above = this.marks.some((mark) => isInside(mark) && place(mark) < top + 20 * scale) ? 1 : 0;
    for (const mark of this.marks) {
      const inside = isInside(mark);
      const y = inside ? place(mark) : top + 14 * scale * above++;
      const colour = isNumber(mark.colour) ? cssColour(`--c${mark.colour}`) : cssColour("--quiet");
      u.ctx.save();
      u.ctx.strokeStyle = u.ctx.fillStyle = colour;
      u.ctx.font = `${11 * scale}px system-ui, sans-serif`;
      if (inside) {
        u.ctx.setLineDash([5 * scale, 4 * scale]);
        u.ctx.beginPath();
        u.ctx.moveTo(left, y);
        u.ctx.lineTo(left + width, y);
        u.ctx.stroke();
      }
      u.ctx.textAlign = inside ? "left" : "right";
      const under = !inside || y < top + 20 * scale;
      u.ctx.textBaseline = under ? "top" : "bottom";
      const x = inside ? left + 6 * scale : left + width - 6 * scale;
      u.ctx.fillText(inside ? mark.label : `↑ ${mark.label}`, x, y + (under ? 4 : -3) * scale);
      u.ctx.restore();
    }
  }

  onZoom(u) {
    const steps = u.data[0], { min, max } = u.scales.x;
    const isWhole = !steps.length || (min <= steps[0] && max >= steps[steps.length - 1]);
    this.zoom = isWhole ? null : { min, max };
    this.element.classList.toggle("zoomed", !isWhole);
  }

  onKey(event) {
    const steps = this.u?.data[0] ?? [];
    if (steps.length < 2 || event.ctrlKey || event.metaKey || event.altKey) return;
    const first = steps[0], last = steps[steps.length - 1];
    const { min, max } = this.zoom ?? { min: first, max: last }, span = max - min;
    const views = {
      "+": [min + span / 4, max - span / 4], "=": [min + span / 4, max - span / 4], "-": [min - span / 2, max + span / 2],
      ArrowLeft: [min - span / 4, max - span / 4], ArrowRight: [min + span / 4, max + span / 4], 0: [first, last],
    };
    const view = views[event.key];
    if (!view) return;
    event.preventDefault();
    this.u.setScale("x", { min: Math.max(view[0], first), max: Math.min(view[1], last) });
  }

  describe() {  // the values under the cursor, or the newest ones
    const at = this.u?.cursor.idx, steps = this.data[0];
    const named = this.series.map((part, index) => ({ part, values: this.data[index + 1] })).filter(({ part }) => part.label);
    const words = named.map(({ part, values }) => {
      let place = isNumber(at) ? at : values.length - 1;
      while (place > 0 && !isNumber(values[place])) place -= 1;
      return { part, text: number(values[place]) };
    });
    const where = isNumber(at) && isNumber(steps[at]) ? `step ${count(steps[at])}` : "";
    const key = words.map((word) => word.text).join() + where;
    if (key === this.described) return;
    this.described = key;
    const several = this.series.filter((part) => part.label).length > 1;
    this.names.replaceChildren(...words.map(({ part, text }) => make(
      "span", { class: `c${part.colour}` }, several || part.always ? `${part.label} ` : "", make("b", {}, text),
    )), make("span", { class: "where" }, where));
    const said = words.map(({ part, text }) => `${part.label}: ${text}`).join("; ");
    this.plot.setAttribute("aria-label", `${this.title} (${this.unit}). ${said}. Keys: plus, minus, arrows, 0 for all.`);
  }

  destroy() {
    this.resizer.disconnect();
    this.u?.destroy();
    charts.delete(this);
  }
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach((chart) => chart.redraw()));

function interpolate(grid, steps, values) {  // null outside the curve
  let at = 0;
  return grid.map((x) => {
    if (!steps.length || x < steps[0] || x > steps[steps.length - 1]) return null;
    while (at < steps.length - 2 && steps[at + 1] < x) at += 1;
    const a = steps[at], b = steps[at + 1] ?? a;
    return b > a ? values[at] + (values[at + 1] - values[at]) * (x - a) / (b - a) : values[at];
  });
}
