"use strict";
// One run in full.

const CURVES = [  // title, unit, {metric: label}
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
const QUIET = new Set(["step", "frame", "seconds", "episodes", "return_mean40", "max_return_mean40", "held_steps"]);

function makeFilm({ film, film_caption: caption }) {  // of a report
  return make("figure", { class: "film" }, make("video", { controls: true, muted: true, loop: true, playsinline: true, src: film }), make("figcaption", { class: "quiet" }, caption));
}

class RunView {
  constructor() {
    this.charts = new Map();
    this.title = make("h1");
    this.over = make("p", { class: "over" });
    this.line = make("p", { class: "quiet line" });
    this.notes = make("ul", { class: "notes", hidden: true });
    this.cards = make("div", { class: "cards" });
    this.play = new Play();
    this.waiting = make("p", { class: "quiet" });
    this.playSection = make("section", {}, make("h2", {}, "The agent at play"), this.waiting, this.play.element);
    this.curves = make("div", { class: "charts" });
    this.map = new RoomMap();
    this.ways = new Ways();
    this.episodes = make("tbody");
    this.episodeTable = make("details", {}, make("summary", {}, "The last episodes"), make(
      "div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ["episode", "step", "environment", "return", "length", "cut short"].map((name) => make("th", { scope: "col" }, name)))), this.episodes)));
    this.command = make("code");
    this.copied = make("span", { role: "status" });
    this.settings = make("tbody");
    this.more = make("div", { class: "charts" });
    this.element = make(
      "article", {}, make("p", { class: "back" }, make("a", { href: "#/" }, "← All runs")),
      make("div", { class: "heading" }, this.over, this.title, this.line), this.notes, this.cards,
      make("div", { class: "stage" }, this.playSection, this.map.element), this.ways.element,
      make("section", {}, make("h2", {}, "Curves"), this.curves), this.map.states,
      make("section", {}, make("h2", {}, "Episodes"), this.episodeTable),
      make("section", {}, make("h2", {}, "Repeat this run"), make("pre", { class: "command", tabindex: "0" }, this.command),
        make("p", {}, make("button", { type: "button", onclick: () => this.copy() }, "Copy"), " ", this.copied),
        make("details", {}, make("summary", {}, "All settings"), make("p", { class: "quiet" }, "Those that differ from the method’s own are marked."), make("table", { class: "settings" }, this.settings)),
        make("details", { class: "more", ontoggle: () => this.drawMore() }, make("summary", {}, "All other measures"), this.more)),
    );
  }

  async copy() {
    try {
      await navigator.clipboard.writeText(this.command.textContent);
      setText(this.copied, "Copied.");
    } catch {
      getSelection().selectAllChildren(this.command);
      setText(this.copied, "Press Ctrl-C to copy.");
    }
  }

  update(run) {
    this.run = run;
    const { newest, columns } = run;
    document.title = `${run.method} on ${run.game} · coex`;
    setText(this.over, run.game);
    setText(this.title, run.method);
    if (this.said !== run.status + run.variant) this.line.replaceChildren(badge(run.status), ` seed ${run.seed}`, run.variant !== run.method ? ` · ${run.variant.slice(run.method.length)}` : "", make("span", { class: "path", title: run.path }, run.name));
    this.said = run.status + run.variant;
    this.showNotes(run.notes);
    this.showCards(run);
    const paper = run.paper ? [{ value: run.paper[0], label: `the paper: ${number(run.paper[0])} after ${count(run.paper[1])} steps` }] : [];
    this.chart("Return", "mean of the last 40 episodes", { return_mean40: "last 40", max_return_mean40: "best" }, columns, paper, "wide");
    for (const [title, unit, keys] of CURVES) this.chart(title, unit, keys, columns);
    this.drawMore();
    this.ways.show(null, columns);
    this.showEpisodes(run.log);
    setText(this.command, run.command);
    const settings = JSON.stringify(run.settings);
    if (settings !== this.set) this.settings.replaceChildren(...run.settings.map(([name, value, differs]) => make("tr", { class: differs ? "changed" : null }, make("th", { scope: "row" }, name), make("td", {}, value))));
    this.set = settings;
    this.showStage();
  }

  showStage() {  // a run shows itself only while it goes on, and only to those who look
    const seen = this.play.play || this.film, waits = this.run?.status === "running" && !this.run.method.startsWith("Archive");
    this.playSection.hidden = !seen && !waits;
    this.waiting.hidden = Boolean(seen);
    this.play.element.hidden = !this.play.play;
    setText(this.waiting, "Waiting for the run to show itself: it does so only while somebody looks.");
  }

  chart(title, unit, keys, columns, marks = [], classes = "", parent = this.curves) {
    const present = Object.entries(keys).filter(([key]) => columns[key]?.some(isNumber));
    if (!present.length) {
      this.charts.get(title)?.element.remove();
      this.charts.get(title)?.destroy();
      this.charts.delete(title);
      return;
    }
    const shape = present.map(([key]) => key).join();
    const data = [columns.step, ...present.map(([key]) => columns[key])];
    let chart = this.charts.get(title);
    if (chart && chart.shape !== shape) {
      chart.destroy();
      this.charts.delete(title);
    }
    if (!this.charts.has(title)) {
      const before = chart?.element;
      const series = present.map(([key, label], index) => ({ label, colour: index, dash: index ? [5, 3] : undefined, width: index ? 1.5 : 2 }));
      chart = new Chart({ title, unit, series, data, marks, sync: "run", height: classes ? 260 : 180 });
      chart.shape = shape;
      if (classes) chart.element.classList.add(classes);
      this.charts.set(title, chart);
      if (before) before.replaceWith(chart.element);
      else parent.append(chart.element);
    } else {
      chart.setData(data);
    }
  }

  drawMore() {  // whatever else was measured, when asked for
    if (!this.more.parentElement.open || !this.run) return;
    const known = new Set(CURVES.flatMap(([, , keys]) => Object.keys(keys)));
    for (const key of Object.keys(this.run.columns)) {
      if (!known.has(key) && !QUIET.has(key)) this.chart(key, "", { [key]: key }, this.run.columns, [], "", this.more);
    }
  }

  showNotes(notes) {
    const said = notes.join();
    if (said === this.noted) return;
    this.noted = said;
    this.notes.hidden = !notes.length;
    this.notes.replaceChildren(...notes.map((note) => make("li", {}, note)));
  }

  showCards(run) {
    const { newest } = run, rooms = roomsOf(newest), left = remaining(run);
    const cards = [
      [number(newest.max_return_mean40), "best mean return of 40", run.paper ? `the paper: ${number(run.paper[0])}` : ""],
      [count(newest.step ?? 0), "agent steps", `${Math.floor(100 * Math.min((newest.step ?? 0) / (run.total || 1), 1))} % of ${count(run.total)}`],
      [whole(newest.episodes), "episodes", `last 40: ${number(newest.return_mean40)}`],
      isNumber(newest["adm/distance"]) ? [newest["adm/distance"].toFixed(2), "cells off", "its place, against RAM"] : null,
      isNumber(rooms) ? [whole(rooms), "rooms reached", isNumber(newest["rooms/clusters"]) ? plural(newest["rooms/clusters"], "cluster") : ""] : null,
      isNumber(newest["archive/cells"]) ? [whole(newest["archive/cells"]), "cells in the archive", `best score ${number(newest["archive/best"])}`] : null,
      [whole(newest.steps_per_second), "steps a second", left === null ? `${duration(newest.seconds)} in all` : `${duration(left)} left`],
    ].filter(Boolean);
    const shape = cards.map((card) => card[1]).join();
    if (shape !== this.carded) this.cards.replaceChildren(...cards.map(() => make("div", {}, make("b"), make("span"), make("small"))));
    this.carded = shape;
    cards.forEach((card, index) => card.forEach((text, part) => setText(this.cards.children[index].children[part], text)));
  }

  showEpisodes(log) {
    const rows = log.slice(-20).reverse();
    const key = JSON.stringify(rows[0] ?? null);
    if (key === this.listed) return;
    this.listed = key;
    this.episodes.replaceChildren(...rows.map((row) => make("tr", {}, row.map((value, index) => make("td", {}, index === 5 ? (value ? "yes" : "no") : index === 3 ? number(value) : whole(value))))));
    if (!log.length) return;
    const data = [log.map((row) => row[1]), log.map((row) => row[3])];
    if (this.scatter) return this.scatter.setData(data);
    this.scatter = new Chart({ title: "Each episode", unit: `return of the last ${whole(log.length)}`, series: [{ label: "return", colour: 1, dots: true, width: 0 }], data, height: 160 });
    this.episodeTable.before(this.scatter.element);
  }

  async show(scene) {
    if (!scene) return;
    await Promise.all([this.play.show(scene.play), this.map.show(scene.map)]);
    this.ways.show(scene.map, this.run?.columns);
    if (scene.film && !this.film) {
      this.film = makeFilm(scene);
      this.playSection.append(this.film);
    }
    this.showStage();
  }

  destroy() {
    this.play.destroy();
    this.scatter?.destroy();
    this.charts.forEach((chart) => chart.destroy());
  }
}
