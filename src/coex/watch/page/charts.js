"use strict";
// Curves by uPlot: zoom by dragging or by keys, one cursor for all charts of a page, values beside the names.

const NUM_COLOURS = 8, FONT = "system-ui, sans-serif";
const labels = [];  // of methods, in the order of their colours
const darkness = matchMedia("(prefers-color-scheme: dark)");

function methodColour(label) {
  if (!labels.includes(label)) labels.push(label);
  return labels.indexOf(label) % NUM_COLOURS;
}

function dashOf(place) {  // tells a chart's methods of one colour apart
  return [undefined, [7, 4], [2, 3], [9, 3, 2, 3]][Math.floor(place / NUM_COLOURS) % 4];
}

function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(typeof name === "number" ? `--c${name}` : name).trim();
}

function fade(colour, share) {  // "#rrggbb" with an opacity
  return colour + Math.round(share * 255).toString(16).padStart(2, "0");
}

// series: [{label, colour (0–7), width, faint, dash, dots, hidden, band: [low, high] as indices of data}]
class Chart extends Component {
  componentDidMount() {
    this.resizer = new ResizeObserver(() => this.resize());
    this.resizer.observe(this.plot);
    this.redraw = () => { this.u?.destroy(); this.u = null; this.resize(); };
    darkness.addEventListener("change", this.redraw);
  }

  shouldComponentUpdate({ data, series }, state) {
    return state !== this.state || data.length !== this.props.data.length || data.some((values, index) => values !== this.props.data[index])
      || JSON.stringify(series) !== JSON.stringify(this.props.series);
  }

  componentDidUpdate(before) {
    if (JSON.stringify(before.series) !== JSON.stringify(this.props.series)) this.redraw();
    else if (this.u && before.data !== this.props.data) {
      const zoom = this.state.zoom;
      this.u.setData(this.props.data, !zoom);
      if (zoom) this.u.setScale("x", zoom);
    }
  }

  componentWillUnmount() {
    this.resizer.disconnect();
    darkness.removeEventListener("change", this.redraw);
    this.u?.destroy();
  }

  resize() {
    const width = this.plot.clientWidth, { height = 180 } = this.props;
    if (width && this.u) this.u.setSize({ width, height });
    else if (width) this.draw(width, height);
  }

  draw(width, height) {
    const { series, sync, data } = this.props, { zoom } = this.state, card = cssColour("--card");
    const axis = { stroke: cssColour("--quiet"), font: `11.5px ${FONT}`, grid: { stroke: cssColour("--line"), width: 1 }, ticks: { show: false } };
    this.u = new uPlot({
      width, height, padding: [10, 12, 0, 0],
      cursor: {
        sync: sync ? { key: sync, setSeries: false } : undefined, y: false, drag: { x: true, y: false, setScale: true, dist: 6 },
        points: { size: 7, fill: (u, index) => cssColour(series[index - 1].colour), stroke: card, width: 1.5 },
      },
      legend: { show: false },
      scales: { x: { time: false }, y: { range: (u, low, high) => this.range(low, high) } },
      axes: [
        { ...axis, size: 26, gap: 4, space: 60, values: (u, values, axis, space, gap) => ticks(values, gap) },
        { ...axis, size: 52, gap: 5, space: 34, values: (u, values, axis, space, gap) => ticks(values, gap).map((said, index) => (values[index] % 1 && this.isWhole() ? "" : said)) },
      ],
      series: [{}, ...series.map(({ colour, hidden, faint, dots, width: thickness = 2, dash }) => ({
        stroke: hidden ? "transparent" : fade(cssColour(colour), faint ? 0.28 : 1), width: thickness, dash, spanGaps: true,
        paths: dots ? () => null : undefined,
        points: { show: (u) => dots || (!hidden && u.data[0].length === 1), size: 5, fill: fade(cssColour(colour), 0.75), stroke: "transparent" },
      }))],
      bands: series.filter((part) => part.band).map(({ band, colour }) => ({ series: band, fill: fade(cssColour(colour), 0.16) })),
      hooks: {
        draw: [(u) => this.drawMarks(u)],
        setCursor: [(u) => { if (u.cursor.idx !== this.state.at) this.setState({ at: u.cursor.idx }); }],
        setScale: [(u, key) => { if (key === "x") this.onZoom(u); }],
      },
    }, data, this.plot);
    for (const [touch, mouse] of Object.entries({ pointerdown: "mousedown", pointermove: "mousemove", pointerup: "mouseup", pointercancel: "mouseup" })) {
      this.u.over.addEventListener(touch, (event) => event.pointerType === "touch" && event.target.dispatchEvent(new MouseEvent(mouse, event)));
    }
    if (zoom) this.u.setScale("x", zoom);
  }

  range(low, high) {
    if (!isNumber(low) || !isNumber(high)) return [0, 1];
    const { marks = [], series } = this.props;
    high = Math.max(high, ...marks.map((mark) => mark.value).filter((value) => value <= 3 * high && value >= low));
    if (low > 0 && low < 0.6 * high) low = 0;
    const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
    return [low === 0 && !series.some((part) => part.dots) ? 0 : low - room, high + room];
  }

  isWhole() {  // counts have no ticks between them
    return this.props.data.slice(1).every((values) => values.every((value) => !isNumber(value) || Number.isInteger(value)));
  }

  drawMarks(u) {  // those that lie beyond the plot are named below each other at its right, above its top
    const scale = devicePixelRatio, { left, top, width } = u.bbox, context = u.ctx;
    let free = top;
    context.save();
    context.lineWidth = scale;
    for (const { value, label, colour = "--quiet" } of [...this.props.marks ?? []].sort((a, b) => a.value - b.value)) {
      const inside = value <= u.scales.y.max, y = inside ? u.valToPos(value, "y", true) : free, under = !inside || y < top + 20 * scale;
      if (under) free = y + (inside ? 2 : 14) * scale;
      context.strokeStyle = context.fillStyle = cssColour(colour);
      context.font = `${11 * scale}px ${FONT}`;
      context.setLineDash([5 * scale, 4 * scale]);
      context.textAlign = inside ? "left" : "right";
      context.textBaseline = under ? "top" : "bottom";
      context.fillText(inside ? label : `↑ ${label}`, inside ? left + 6 * scale : left + width - 6 * scale, y + (under ? 4 : -3) * scale);
      if (inside) context.stroke(new Path2D(`M${left} ${y}h${width}`));
    }
    context.restore();
  }

  onZoom(u) {
    const steps = u.data[0], { min, max } = u.scales.x;
    const zoom = !steps.length || (min <= steps[0] && max >= steps[steps.length - 1]) ? null : { min, max };
    if (JSON.stringify(zoom) !== JSON.stringify(this.state.zoom ?? null)) this.setState({ zoom });
  }

  onKey(event) {
    const steps = this.props.data[0];
    if (!this.u || steps.length < 2 || event.ctrlKey || event.metaKey || event.altKey) return;
    const first = steps[0], last = steps[steps.length - 1];
    const { min, max } = this.state.zoom ?? { min: first, max: last }, quarter = (max - min) / 4;
    const moves = { "+": [1, -1], "=": [1, -1], "-": [-2, 2], ArrowLeft: [-1, -1], ArrowRight: [1, 1], 0: [-Infinity, Infinity] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    this.u.setScale("x", { min: Math.max(min + quarter * move[0], first), max: Math.min(max + quarter * move[1], last) });
  }

  values() {  // under the cursor, or the newest ones
    return this.props.series.map((part, index) => {
      const values = this.props.data[index + 1];
      let at = this.state.at ?? values.length - 1;
      while (at > 0 && !isNumber(values[at])) at -= 1;
      return { ...part, text: number(values[at]) };
    }).filter((part) => part.label);
  }

  render({ title, unit, data, wide, children }, { at, zoom }) {
    const values = this.values(), step = data[0][at];
    return h(
      "figure", { class: `chart${wide ? " wide" : ""}${zoom ? " zoomed" : ""}` },
      h("figcaption", {}, h("b", {}, title), " ", h("span", {}, unit)),
      h("p", { class: "legend" },
        values.map(({ label, colour, dash, text, always }) => h("span", { class: `c${colour}${dash ? " dashed" : ""}` }, values.length > 1 || always ? `${label} ` : "", h("b", {}, text))),
        h("span", { class: "where" }, isNumber(step) ? `step ${count(step)}` : "")),
      h("div", {
        class: "plot", tabindex: "0", role: "img", ref: (plot) => { this.plot = plot; }, onKeyDown: (event) => this.onKey(event),
        "aria-label": `${title} (${unit}). ${values.map(({ label, text }) => `${label}: ${text}`).join("; ")}. Keys: plus, minus, arrows, 0 for all.`,
      }),
      children,
    );
  }
}
