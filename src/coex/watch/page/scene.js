"use strict";
// The agent at play, and the map of rooms: pictures that a run wrote, with what it makes of them drawn over.

const FRAMES_PER_SECOND = 15, MOST_CELLS = 80;

function place(grid) {  // where the cells lie, as shares of the picture: see coex.config.grid
  const { cells, first, tile, field } = grid ?? {};
  const count = Number.isInteger(cells) ? Math.min(Math.max(cells, 0), MOST_CELLS) : 0;
  return { cells: count, centre: (i) => first + i * tile, tile, field };
}

function isPicture(text) {
  return typeof text === "string" && text.length < 4e6 && /^[A-Za-z0-9+/]+=*$/.test(text);
}

function load(picture) {
  return new Promise((resolve) => {
    if (!isPicture(picture)) return resolve(null);
    const image = new Image();
    image.onload = () => resolve(image);
    image.onerror = () => resolve(null);
    image.src = `data:image/png;base64,${picture}`;
  });
}

class Play {  // plays the newest strip of frames, then waits on its last for the next
  constructor() {
    this.canvas = make("canvas", { width: 640, height: 640, role: "img", "aria-label": "The agent at play" });
    this.facts = make("dl", { class: "facts" });
    this.bonuses = make("canvas", { width: 600, height: 80, class: "strip", role: "img", "aria-label": "Bonus of the last steps" });
    this.caption = make("p", { class: "quiet" });
    this.element = make(
      "div", { class: "play", hidden: true },
      make("div", { class: "screen" }, this.canvas),
      make("div", { class: "panel" }, this.facts, this.bonuses, this.caption),
    );
    this.rows = new Map();
    this.history = [];
    this.frame = 0;
  }

  async show(play) {
    if (!play || !Array.isArray(play.frames) || play.stamp === this.stamp) return;
    play.frames = play.frames.slice(0, 64).filter((frame) => frame && typeof frame === "object");
    this.stamp = play.stamp;
    if (!play.frames.length) return;
    const strip = await load(play.picture);
    if (!strip) return;
    this.strip = strip;
    this.play = play;
    this.frame = 0;
    if (!this.timer) this.timer = setInterval(() => this.tick(), 1000 / FRAMES_PER_SECOND);
    const sees = play.frames.some((frame) => frame.attention);
    setText(this.caption, sees
      ? "Orange is the attention, the white corners are where the agent believes to be" + (play.frames.some((f) => f.truth?.length) ? ", the thin lines are where RAM says it is." : ".")
      : "What the policy sees.");
  }

  tick() {
    const { frames, grid } = this.play;
    if (this.frame >= frames.length) return;
    const frame = frames[this.frame];
    const size = this.strip.width, context = this.canvas.getContext("2d"), side = this.canvas.width;
    context.imageSmoothingEnabled = false;
    context.drawImage(this.strip, 0, this.frame * size, size, size, 0, 0, side, side);
    this.frame += 1;
    if (Array.isArray(frame.attention)) this.drawAttention(context, frame.attention, grid, side);
    context.strokeStyle = "#40e0d0";
    context.lineWidth = 3;
    for (const [x, y, width, height] of Array.isArray(frame.truth) ? frame.truth.filter(Array.isArray) : []) {
      context.strokeRect(x * side, y * side, width * side, height * side);
    }
    if (Array.isArray(frame.cell)) this.drawCorners(context, frame.cell, grid, side);
    this.tell(frame);
  }

  drawAttention(context, attention, grid, side) {  // full at a cell's centre, nothing beyond the next
    const { cells, centre, tile } = place(grid), size = cells + 2;
    if (this.small?.width !== size) this.small = make("canvas", { width: size, height: size });
    const inner = this.small.getContext("2d"), pixels = inner.createImageData(size, size);
    attention.slice(0, cells * cells).forEach((value, index) => {
      const at = 4 * ((Math.floor(index / cells) + 1) * size + index % cells + 1);
      pixels.data.set([255, 150, 0, Math.min(Math.max(Number(value) || 0, 0), 1) * 205], at);
    });
    for (let at = 0; at < pixels.data.length; at += 4) pixels.data.set([255, 150, 0], at);
    inner.putImageData(pixels, 0, 0);
    context.imageSmoothingEnabled = true;
    const start = (centre(0) - 1.5 * tile) * side;
    context.drawImage(this.small, start, start, size * tile * side, size * tile * side);
  }

  drawCorners(context, cell, grid, side) {
    const { centre, field } = place(grid), half = field / 2 * side;
    const [x, y] = cell.map((index) => centre(index) * side), arm = half / 2;
    context.strokeStyle = "#fff";
    context.lineWidth = 4;
    context.beginPath();
    for (const [sx, sy] of [[-1, -1], [1, -1], [-1, 1], [1, 1]]) {
      context.moveTo(x + sx * (half - arm), y + sy * half);
      context.lineTo(x + sx * half, y + sy * half);
      context.lineTo(x + sx * half, y + sy * (half - arm));
    }
    context.stroke();
  }

  tell(frame) {
    const facts = {
      action: String(frame.action ?? "–"), score: number(frame.score), "value V(s)": number(frame.value),
      room: isNumber(frame.room) ? String(frame.room) : null,
      "located cell x, y": Array.isArray(frame.cell) ? frame.cell.join(", ") : null,
      "visits N": isNumber(frame.visits) ? whole(frame.visits) : null, bonus: isNumber(frame.bonus) ? number(frame.bonus) : null,
    };
    for (const [name, value] of Object.entries(facts)) {
      if (value === null) continue;
      if (!this.rows.has(name)) {
        const cell = make("dd");
        this.rows.set(name, cell);
        this.facts.append(make("div", {}, make("dt", {}, name), cell));
      }
      setText(this.rows.get(name), value);
    }
    this.bonuses.hidden = !isNumber(frame.bonus);
    if (isNumber(frame.bonus)) {
      this.history = [...this.history, frame.bonus].slice(-120);
      const context = this.bonuses.getContext("2d"), { width, height } = this.bonuses;
      context.clearRect(0, 0, width, height);
      context.fillStyle = cssColour("--heat");
      this.history.forEach((value, index) => {
        const share = Math.max(0.02, 1 + Math.log10(Math.max(value, 1e-4)) / 3);
        context.fillRect(width - 5 * (this.history.length - index), height * (1 - share), 4, height * share);
      });
    }
  }

  destroy() {
    clearInterval(this.timer);
  }
}

class RoomMap {
  constructor() {
    this.summary = make("p", { class: "quiet" });
    this.rooms = make("div", { class: "rooms" });
    this.states = make("section", { class: "states-of-map" });
    this.element = make("section", { hidden: true }, make("h2", {}, "Where it has been"), this.rooms, this.summary);
    this.figures = new Map();
  }

  async show(map) {
    if (!map || !Array.isArray(map.rooms) || map.step === this.step) return;
    this.step = map.step;
    this.element.hidden = false;
    const left = map.num_rooms - map.rooms.length;
    setText(this.summary, `At step ${whole(map.step)}: ${plural(map.num_rooms, "room")}, ${plural(map.num_states, "state")}, ` +
      `${whole(map.num_once)} of them visited once. A cell’s colour is the logarithm of its visits; point at one for their number.` +
      (left > 0 ? ` ${plural(left, "room")} with few visits ${left === 1 ? "is" : "are"} not shown.` : ""));
    const shown = await Promise.all(map.rooms.slice(0, 64).map((room) => this.draw(room, map)));
    this.rooms.replaceChildren(...shown);
    const tables = [["Most visited states", map.most], ["Rarest states, the newest first", map.rarest]];
    this.states.replaceChildren(...tables.map(([title, states]) => make(
      "div", {}, make("h3", {}, title), make("ul", {}, (Array.isArray(states) ? states : []).map((state) => make(
        "li", {}, make("b", {}, plural(state.count, "visit")), " ",
        Object.entries(state.key).map(([letter, value]) => `${{ x: "x", y: "y", c: "room", R: "score" }[letter] ?? letter} ${whole(value)}`).join(", "),
        make("small", {}, ` next bonus ${number((state.count + 1) ** -0.5)}`),
      ))),
    )));
  }

  async draw(room, map) {
    let figure = this.figures.get(room.name);
    if (!figure) {
      const canvas = make("canvas", { width: 252, height: 252, role: "img" });
      const output = make("output");
      figure = { canvas, output, caption: make("figcaption") };
      figure.element = make("figure", {}, make("div", { class: "room" }, canvas, output), figure.caption);
      canvas.addEventListener("pointermove", (event) => this.point(figure, event));
      canvas.addEventListener("pointerleave", () => setText(output, ""));
      this.figures.set(room.name, figure);
    }
    figure.room = room;
    figure.grid = map.grid;
    const name = map.letters.includes("c") ? `Room ${room.name}` : "The screen";
    figure.caption.replaceChildren(
      make("b", {}, name, room.newest ? make("span", { class: "badge running" }, "newest") : ""),
      `${plural(room.visits, "visit")} · ${plural(room.states, "state")}` + (isNumber(room.true) ? ` · RAM: ${room.true}` : ""),
    );
    figure.canvas.setAttribute("aria-label", `${name}: ${plural(room.visits, "visit")}`);
    figure.element.classList.toggle("newest", room.newest === true);
    const context = figure.canvas.getContext("2d"), side = figure.canvas.width, image = await load(room.picture);
    context.imageSmoothingEnabled = false;
    context.fillStyle = "#11141a";
    context.fillRect(0, 0, side, side);
    if (image) context.drawImage(image, 0, 0, side, side);
    if (Array.isArray(room.heat)) {
      const { cells, centre, tile } = place(map.grid), most = Math.log1p(Math.max(...room.heat));
      room.heat.slice(0, cells * cells).forEach((visits, index) => {
        if (!(visits > 0)) return;
        context.fillStyle = `rgba(255, 122, 26, ${0.1 + 0.75 * Math.log1p(visits) / most})`;
        const left = centre(index % cells) - tile / 2, top = centre(Math.floor(index / cells)) - tile / 2;
        context.fillRect(left * side, top * side, tile * side + 0.5, tile * side + 0.5);
      });
    }
    return figure.element;
  }

  point(figure, event) {
    const { cells, centre, tile } = place(figure.grid), box = figure.canvas.getBoundingClientRect();
    const cell = (share) => Math.floor((share - centre(0)) / tile + 0.5);
    const x = cell((event.clientX - box.left) / box.width), y = cell((event.clientY - box.top) / box.height);
    const inside = x >= 0 && y >= 0 && x < cells && y < cells && figure.room.heat;
    setText(figure.output, inside ? `cell ${x}, ${y}: ${plural(figure.room.heat[y * cells + x], "visit")}` : "");
  }
}
