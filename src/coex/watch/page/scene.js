"use strict";
// The agent at play, the map of rooms and the tree of ways: what a run wrote of itself, which may be anything.

const FRAMES_PER_SECOND = 15, MOST_FRAMES = 64, MOST_BONUSES = 120, MOST_CELLS = 80, MOST_ROOMS = 64, MOST_WAYS = 60;

function place(grid) {  // where the cells lie, as shares of the picture: see coex.config.grid
  const { cells, first, tile, field } = grid ?? {};
  return { cells: Number.isInteger(cells) ? Math.min(Math.max(cells, 0), MOST_CELLS) : 0, centre: (i) => first + i * tile, tile, field };
}

function list(value, most) {
  return Array.isArray(value) ? value.filter((part) => part && typeof part === "object").slice(0, most) : [];
}

function address(picture) {
  const isPicture = typeof picture === "string" && picture.length < 4e6 && /^[A-Za-z0-9+/]+=*$/.test(picture);
  return isPicture ? `data:image/png;base64,${picture}` : null;
}

async function load(picture) {
  const image = new Image(), src = address(picture);
  if (!src) return null;
  image.src = src;
  return image.decode().then(() => image, () => null);
}

class Play extends Component {  // plays the newest strip of frames, then waits on its last for the next
  componentDidMount() {
    this.history = [];
    this.begin();
    this.timer = setInterval(() => this.tick(), 1000 / FRAMES_PER_SECOND);
  }

  shouldComponentUpdate({ play }, state) {
    return play !== this.props.play || state !== this.state;
  }

  componentDidUpdate({ play }) {
    if (play !== this.props.play) this.begin();
  }

  componentWillUnmount() {
    clearInterval(this.timer);
  }

  async begin() {
    const { play } = this.props, strip = await load(play.picture);
    if (strip && play === this.props.play) Object.assign(this, { strip, grid: place(play.grid), next: list(play.frames, MOST_FRAMES) });
  }

  tick() {
    if (!this.next?.length) return;
    const frames = list(this.props.play.frames, MOST_FRAMES), frame = this.next.shift(), size = this.strip.width;
    const context = this.canvas.getContext("2d"), side = this.canvas.width;
    context.imageSmoothingEnabled = false;
    context.drawImage(this.strip, 0, (frames.length - this.next.length - 1) * size, size, size, 0, 0, side, side);
    if (Array.isArray(frame.attention)) this.drawAttention(context, frame.attention, side);
    context.strokeStyle = "#40e0d0";
    context.lineWidth = 3;
    for (const [x, y, width, height] of list(frame.truth, 8).filter(Array.isArray)) context.strokeRect(x * side, y * side, width * side, height * side);
    if (Array.isArray(frame.cell)) this.drawCorners(context, frame.cell, side);
    if (isNumber(frame.bonus)) this.drawBonuses(frame.bonus);
    this.setState({ frame });
  }

  drawAttention(context, attention, side) {  // full at a cell's centre, nothing beyond the next; the root lifts what is weak, as in films
    const { cells, centre, tile } = this.grid, size = cells + 2, small = new OffscreenCanvas(size, size), inner = small.getContext("2d");
    const pixels = inner.createImageData(size, size);
    for (let at = 0; at < pixels.data.length; at += 4) pixels.data.set([255, 150, 0, 0], at);
    attention.slice(0, cells * cells).forEach((value, index) => {
      pixels.data[4 * ((Math.floor(index / cells) + 1) * size + index % cells + 1) + 3] = Math.sqrt(Math.min(Math.max(Number(value) || 0, 0), 1)) * 191;
    });
    inner.putImageData(pixels, 0, 0);
    context.imageSmoothingEnabled = true;
    const start = (centre(0) - 1.5 * tile) * side;
    context.drawImage(small, start, start, size * tile * side, size * tile * side);
  }

  drawCorners(context, cell, side) {
    const { centre, field } = this.grid, half = field / 2 * side, arm = half / 2, [x, y] = cell.map((index) => centre(index) * side);
    context.strokeStyle = "#fff";
    context.lineWidth = 4;
    for (const [right, down] of [[-1, -1], [1, -1], [-1, 1], [1, 1]]) {
      context.stroke(new Path2D(`M${x + right * (half - arm)} ${y + down * half}h${right * arm}v${-down * arm}`));
    }
  }

  drawBonuses(bonus) {  // of the last steps, the newest at the right
    this.history = [...this.history, bonus].slice(-MOST_BONUSES);
    const context = this.bonuses.getContext("2d"), { width, height } = this.bonuses;
    context.clearRect(0, 0, width, height);
    context.fillStyle = cssColour("--heat");
    this.history.forEach((value, index) => {
      const share = Math.max(0.02, 1 + Math.log10(Math.max(value, 1e-4)) / 3);
      context.fillRect(width - 5 * (this.history.length - index), height * (1 - share), 4, height * share);
    });
  }

  render({ play }, { frame = {} }) {
    const frames = list(play.frames, MOST_FRAMES), sees = frames.some((one) => one.attention);
    const facts = [
      ["action", String(frame.action ?? "–")], ["score", number(frame.score)], ["value V(s)", number(frame.value)],
      isNumber(frame.room) && ["room", String(frame.room)],
      Array.isArray(frame.cell) && ["located cell x, y", frame.cell.map(whole).join(", ")],
      isNumber(frame.visits) && ["visits N", whole(frame.visits)], isNumber(frame.bonus) && ["bonus", number(frame.bonus)],
    ].filter(Boolean);
    const truth = frames.some((one) => one.truth?.length) ? ", the thin lines are where RAM says it is." : ".";
    return h(
      "div", { class: "play" },
      h("canvas", { class: "screen", width: 640, height: 640, role: "img", "aria-label": "The agent at play", ref: (canvas) => { this.canvas = canvas; } }),
      h("div", {},
        h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", { key: name }, h("dt", {}, name), h("dd", {}, value)))),
        h("canvas", {
          class: "strip", width: 600, height: 80, role: "img", "aria-label": "Bonus of the last steps", hidden: !isNumber(frame.bonus),
          ref: (canvas) => { this.bonuses = canvas; },
        }),
        h("p", { class: "quiet" }, sees ? `Orange is the attention, the white corners are where the agent believes to be${truth}` : "What the policy sees.")),
    );
  }
}

function RoomMap({ map }) {
  const left = map.num_rooms - list(map.rooms, MOST_ROOMS).length;
  return h("section", {}, h("h2", {}, "Where it has been"),
    h("div", { class: "rooms" }, list(map.rooms, MOST_ROOMS).map((room) => h(Room, { key: room.name, room, map }))),
    h("p", { class: "quiet" }, `At step ${whole(map.step)}: ${plural(map.num_rooms, "room")}, ${plural(map.num_states, "state")}, ` +
      `${whole(map.num_once)} of them visited once. A cell’s colour is the logarithm of its visits; point at one for their number.` +
      (left > 0 ? ` ${plural(left, "room")} with few visits ${left === 1 ? "is" : "are"} not shown.` : "")));
}

class Room extends Component {
  componentDidMount() {
    this.draw();
  }

  shouldComponentUpdate({ map }, state) {
    return map !== this.props.map || state !== this.state;
  }

  componentDidUpdate({ map }) {
    if (map !== this.props.map) this.draw();
  }

  async draw() {
    const { room, map } = this.props, image = await load(room.picture), { cells, centre, tile } = place(map.grid);
    if (map !== this.props.map || !this.canvas) return;
    const context = this.canvas.getContext("2d"), side = this.canvas.width;
    context.imageSmoothingEnabled = false;
    context.clearRect(0, 0, side, side);
    if (image) context.drawImage(image, 0, 0, side, side);
    const heat = Array.isArray(room.heat) ? room.heat.slice(0, cells * cells) : [], most = Math.log1p(Math.max(...heat));
    heat.forEach((visits, index) => {
      if (!(visits > 0)) return;
      context.fillStyle = `rgba(255, 122, 26, ${0.1 + 0.75 * Math.log1p(visits) / most})`;
      const left = centre(index % cells) - tile / 2, top = centre(Math.floor(index / cells)) - tile / 2;
      context.fillRect(left * side, top * side, tile * side + 0.5, tile * side + 0.5);
    });
  }

  point(event) {
    const { room, map } = this.props, { cells, centre, tile } = place(map.grid), box = this.canvas.getBoundingClientRect();
    const cell = (share) => Math.floor((share - centre(0)) / tile + 0.5);
    const x = cell((event.clientX - box.left) / box.width), y = cell((event.clientY - box.top) / box.height);
    const inside = x >= 0 && y >= 0 && x < cells && y < cells && Array.isArray(room.heat);
    this.setState({ said: inside ? `cell ${x}, ${y}: ${plural(room.heat[y * cells + x], "visit")}` : null });
  }

  render({ room, map }, { said }) {
    const name = String(map.letters).includes("c") ? `Room ${room.name}` : "The screen", visits = plural(room.visits, "visit");
    return h(
      "figure", { class: room.newest === true ? "newest" : null },
      h("div", { class: "room" },
        h("canvas", {
          width: 252, height: 252, role: "img", "aria-label": `${name}: ${visits}`, ref: (canvas) => { this.canvas = canvas; },
          onPointerMove: (event) => this.point(event), onPointerLeave: () => this.setState({ said: null }),
        }), said && h("output", {}, said)),
      h("figcaption", {}, h("b", {}, name, room.newest === true && h("span", { class: "badge running" }, "newest")),
        `${visits} · ${plural(room.states, "state")}${isNumber(room.true) ? ` · RAM: ${room.true}` : ""}`),
    );
  }
}

function States({ map }) {
  const words = { x: "x", y: "y", c: "room", R: "score" };
  return h("section", { class: "states-of-map" }, [["Most visited states", map.most], ["Rarest states, the newest first", map.rarest]].map(
    ([title, states]) => h("div", {}, h("h3", {}, title), h("ul", {}, list(states, 20).map((state) => h(
      "li", {}, h("b", {}, plural(state.count, "visit")), " ",
      Object.entries(state.key).map(([letter, value]) => `${words[letter] ?? letter} ${whole(value)}`).join(", "),
      h("small", {}, ` next bonus ${number((state.count + 1) ** -0.5)}`),
    )))),
  ));
}

function Ways({ map, columns }) {  // the rooms of an archive in the order of discovery, each after the one it was reached from
  const ways = list(map.ways, MOST_WAYS), names = ways.map((way) => way.name), left = map.ways.length - ways.length;
  const branch = (parent) => h("ul", {}, ways.map((way, rank) => {
    const isChild = parent < 0 ? !names.includes(way.parent) : way.parent === names[parent] && parent < rank;
    return isChild && names.indexOf(way.name) === rank && h("li", { key: rank }, node(way, rank), branch(rank));
  }));
  const node = ({ name, steps, score, cells }, rank) => {
    const at = (columns["archive/rooms"] ?? []).findIndex((rooms) => rooms > rank);  // the first log point with so many
    const picture = address(list(map.rooms, MOST_ROOMS).find((room) => room.name === name)?.picture);
    return h(
      "div", { class: rank === map.ways.length - 1 ? "way newest" : "way" }, picture && h("img", { src: picture, alt: "" }),
      h("div", {}, h("b", {}, `Room ${name}`), h("small", {}, `way of ${plural(steps, "step")}`),
        h("small", {}, `score ${number(score)} · ${plural(cells, "game")}`), at >= 0 && h("small", {}, `by step ${count(columns.step[at])}`)),
    );
  };
  return h("section", {}, h("h2", {}, "The tree of ways"),
    h("div", { class: "scroll ways", tabindex: "0", role: "region", "aria-label": "The tree of ways" }, branch(-1)),
    h("p", { class: "quiet" }, "Each room after the one that it was reached from: the length of the shortest way there from a real start, " +
      "the best score there, the saved games in it, and the log point by which it had been reached." +
      (left > 0 ? ` ${plural(left, "room")} found later are not shown.` : "")));
}
