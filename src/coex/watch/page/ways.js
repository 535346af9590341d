"use strict";
// The tree of ways: the rooms of an archive, each after the room that it was reached from.

const MOST_NODES = 60;

function reachedBy(columns, rank) {  // the first log point with so many rooms
  const at = (columns?.["archive/rooms"] ?? []).findIndex((rooms) => rooms > rank);
  return at < 0 ? null : columns.step[at];
}

class Ways {
  constructor() {
    this.tree = make("div", { class: "scroll ways", tabindex: "0", role: "region", "aria-label": "The tree of ways" });
    this.summary = make("p", { class: "quiet" });
    this.element = make("section", { hidden: true }, make("h2", {}, "The tree of ways"), this.tree, this.summary);
  }

  show(map, columns) {
    this.map = map ?? this.map;
    const ways = this.map?.ways, key = `${this.map?.step} ${columns?.step.length}`;
    if (!Array.isArray(ways) || !ways.length || key === this.key) return;
    this.key = key;
    this.element.hidden = false;
    const shown = ways.slice(0, MOST_NODES);  // in the order of discovery: a room comes after the one before it
    const lists = new Map(shown.map((node) => [node.name, make("ul")])), root = make("ul");
    shown.forEach((node, rank) => {
      const item = make("li", {}, this.node(node, reachedBy(columns, rank), rank === ways.length - 1), lists.get(node.name));
      (lists.get(node.parent) ?? root).append(item);
    });
    this.tree.replaceChildren(root);
    setText(this.summary, "Each room after the one that it was reached from: the length of the shortest way there from a real start, " +
      "the best score there, the saved games in it, and the log point by which it had been reached." +
      (ways.length > shown.length ? ` ${plural(ways.length - shown.length, "room")} found later are not shown.` : ""));
  }

  node({ name, steps, score, cells }, step, isNewest) {
    const room = (Array.isArray(this.map.rooms) ? this.map.rooms : []).find((one) => one.name === name);
    return make(
      "div", { class: isNewest ? "way newest" : "way" },
      isPicture(room?.picture) ? make("img", { src: `data:image/png;base64,${room.picture}`, alt: "" }) : "",
      make("div", {}, make("b", {}, `Room ${name}`), make("small", {}, `way of ${plural(steps, "step")}`),
        make("small", {}, `score ${number(score)} · ${plural(cells, "game")}`), step === null ? "" : make("small", {}, `by step ${count(step)}`)),
    );
  }
}
