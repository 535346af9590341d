"use strict";
// One run in full.

const CURVES = [  // title, unit, {metric: label}
  ["Return", "mean of the last 40 episodes", { return_mean40: "last 40", max_return_mean40: "best" }],
  ["Archive: best score", "points", { "archive/best": "best" }],
  ["Archive: saved games", "one a cell", { "archive/cells": "saved games" }],
  ["Reward", "mean of a step, unclipped", { "reward/mean": "reward" }],
  ["Location error", "cells of the grid, by RAM", { "adm/distance": "cells off" }],
  ["Rooms found", "count", { "rooms/true": "by RAM", "rooms/clusters": "clusters", "archive/rooms": "in the archive" }],
  ["Bonus", "mean of a step", { "bonus/mean": "bonus" }],
  ["Policy entropy", "nats", { entropy: "entropy" }],
  ["States visited", "different ψ(s)", { "counts/states": "states" }],
  ["Rooms: clusters against RAM", "adjusted Rand index", { "rooms/ari_long": "last 5,000", "rooms/ari": "last 100" }],
  ["Speed", "agent steps a second", { steps_per_second: "steps/s" }],
  ["Does the value fit?", "explained variance", { explained_variance: "explained variance" }],
  ["Does the network look?", "standard deviation over states", { "network/policy_spread": "of log π", "network/spread": "of the last layer" }],
  ["Dead units, cut gradients", "share", { "network/dead_units": "dead units", cut_gradients: "cut gradients" }],
];
const SHOWN = new Set(["step", "frame", "seconds", "episodes", "held_steps", ...CURVES.flatMap(([, , keys]) => Object.keys(keys))]);

function RunView({ run, scene: { play, map, film, film_caption, way_film, way_film_caption }, single }) {
  const waits = run.status === "running" && !run.method.startsWith("Archive");  // it shows itself to those who look
  const others = Object.keys(run.columns).filter((key) => !SHOWN.has(key)).map((key) => [key, "", { [key]: key }]);
  return h(
    "article", {}, !single && h("p", { class: "back" }, h("a", { href: "#/" }, "← All runs")),
    h("div", { class: "heading" },
      h("p", { class: "over" }, run.game), h("h1", {}, run.method),
      h("p", { class: "quiet line" }, h(Badge, run), ` seed ${run.seed}`,
        run.variant !== run.method && ` · ${run.variant.slice(run.method.length)}`, h("span", { class: "path", title: run.path }, run.name))),
    run.notes.length > 0 && h("ul", { class: "notes" }, run.notes.map((note) => h("li", {}, note))),
    h("div", { class: "cards" }, cards(run).map(([value, name, more]) => h("div", { key: name }, h("b", {}, value), h("span", {}, name), h("small", {}, more)))),
    h("div", { class: "stage" },
      (play || film || waits) && h("section", {}, h("h2", {}, "The agent at play"),
        play ? h(Guard, {}, h(Play, { play }))
          : !film && h("p", { class: "quiet" }, "Waiting for the run to show itself: it does so only while somebody looks."),
        film && h(Film, { film, film_caption })),
      map && h(Guard, {}, h(RoomMap, { map }))),
    way_film && h("section", {}, h("h2", {}, "The best way"), h(Film, { film: way_film, film_caption: way_film_caption })),
    map?.ways?.length > 0 && h(Guard, {}, h(Ways, { map, columns: run.columns })),
    h("section", {}, h("h2", {}, "Curves"), h(Curves, { run, curves: CURVES })),
    map && h(Guard, {}, h(States, { map })),
    h("section", {}, h("h2", {}, "Episodes"), h(Episodes, { log: run.log })),
    h("section", {}, h("h2", {}, "Repeat this run"), h(Command, { command: run.command }),
      h("details", {}, h("summary", {}, "All settings"), h("p", { class: "quiet" }, "Those that differ from the method’s own are marked."),
        h("table", { class: "settings" }, h("tbody", {}, run.settings.map(([name, value, differs]) => h(
          "tr", { class: differs ? "changed" : null }, h("th", { scope: "row" }, name), h("td", {}, value),
        ))))),
      h("details", { class: "more" }, h("summary", {}, "All other measures"), h(Curves, { run, curves: others }))),
  );
}

class Guard extends Component {  // a run wrote what is shown here: whatever it is, the rest of the page stays
  componentDidCatch() {
    this.setState({ failed: true });
  }

  render({ children }, { failed }) {
    return failed ? h("p", { class: "quiet" }, "What the run shows of itself here cannot be read.") : children;
  }
}

function Curves({ run: { columns, paper }, curves }) {
  return h("div", { class: "charts" }, curves.map(([title, unit, keys]) => {
    const present = Object.keys(keys).filter((key) => columns[key]?.some(isNumber)), wide = title === "Return";
    const series = present.map((key, index) => ({ label: keys[key], colour: index, dash: index ? [5, 3] : undefined, width: index ? 1.5 : 2 }));
    const marks = wide && paper ? [{ value: paper[0], label: `the paper: ${number(paper[0])} after ${count(paper[1])} steps` }] : [];
    const data = [columns.step, ...present.map((key) => columns[key])];
    return present.length > 0 && h(Chart, { key: title, title, unit, series, data, marks, wide, sync: "run", height: wide ? 260 : 180 });
  }));
}

function cards(run) {
  const { newest } = run, step = newest.step ?? 0, rooms = roomsOf(run), left = remaining(run);
  const isSearch = isNumber(newest["archive/best"]) && !newest.episodes;  // the archive's policy has not played yet
  return [
    isSearch ? [number(newest["archive/best"]), "best score of the search"] : [number(newest.max_return_mean40), "best mean return of 40", run.paper && `the paper: ${number(run.paper[0])}`],
    [count(step), "agent steps", `${Math.floor(100 * Math.min(step / (run.total || 1), 1))} % of ${count(run.total)}`],
    !isSearch && [whole(newest.episodes), "episodes", `last 40: ${number(newest.return_mean40)}`],
    isNumber(newest["adm/distance"]) && [newest["adm/distance"].toFixed(2), "cells off", "its place, against RAM"],
    isNumber(rooms) && [whole(rooms), "rooms reached", isNumber(newest["rooms/clusters"]) && plural(newest["rooms/clusters"], "cluster")],
    isNumber(newest["archive/cells"]) && [whole(newest["archive/cells"]), "cells in the archive", !isSearch && `best score ${number(newest["archive/best"])}`],
    [whole(newest.steps_per_second), "steps a second", left === null ? `${duration(newest.seconds)} in all` : `${duration(left)} left`],
  ].filter(Boolean);
}

class Episodes extends Component {
  shouldComponentUpdate({ log }) {
    return JSON.stringify(log.at(-1)) !== JSON.stringify(this.props.log.at(-1));
  }

  render({ log }) {
    const columns = [["episode", whole], ["step", whole], ["environment", whole], ["return", number], ["length", whole], ["cut short", (cut) => (cut ? "yes" : "no")]];
    const rows = log.slice(-20).reverse().map((row) => h("tr", {}, row.map((value, index) => h("td", {}, columns[index][1](value)))));
    return !log.length ? h("p", { class: "quiet" }, "None has ended yet.") : [
      h(Chart, {
        title: "Each episode", unit: `return of the last ${whole(log.length)}`, height: 160,
        series: [{ label: "return", colour: 1, dots: true, width: 0 }], data: [log.map((row) => row[1]), log.map((row) => row[3])],
      }),
      h("details", {}, h("summary", {}, "The last episodes"), h(Table, { label: "The last episodes", heads: columns.map(([name]) => [name]) }, rows)),
    ];
  }
}

class Command extends Component {
  async copy(command) {
    try {
      await navigator.clipboard.writeText(command);
      this.setState({ said: "Copied." });
    } catch {
      getSelection().selectAllChildren(this.base.querySelector("code"));
      this.setState({ said: "Press Ctrl-C to copy." });
    }
  }

  render({ command }, { said }) {
    return h("div", {}, h("pre", { class: "command", tabindex: "0" }, h("code", {}, command)),
      h("p", {}, h("button", { type: "button", onClick: () => this.copy(command) }, "Copy"), " ", h("span", { role: "status" }, said)));
  }
}
