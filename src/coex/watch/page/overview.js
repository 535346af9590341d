"use strict";
// All runs: small curves by game, and a table.

const COLUMNS = [
  ["status", "status", (run) => run.status],
  ["game", "game", (run) => run.game],
  ["method", "method", (run) => run.variant],
  ["seed", "seed", (run) => run.seed],
  ["progress", "progress", (run) => (run.total ? (run.newest.step ?? 0) / run.total : 0)],
  ["return", "return of the last 40", (run) => run.newest.return_mean40],
  ["best", "best mean of 40", (run) => run.newest.max_return_mean40],
  ["rooms", "rooms reached", (run) => roomsOf(run.newest)],
  ["steps/s", "agent steps a second", (run) => run.newest.steps_per_second],
  ["left", "time left", (run) => remaining(run)],
  ["name", "directory", (run) => run.name],
];

const GRID_STATES = ["given up", "running", "waiting", "finished"];  // in the order of interest

class Overview {
  constructor() {
    this.runs = new Map();
    this.games = new Map();  // {element, chart, legend, shape}
    this.rows = new Map();
    this.sortBy = { column: 0, down: true };
    this.status = "all";
    this.films = make("div", { class: "films" });
    this.grids = new Map();  // {element, state, rows}
    this.gridList = make("section", { "aria-label": "Grids" });
    this.filter = make("input", {
      type: "search", placeholder: "Filter: game, method, seed, directory …", "aria-label": "Filter the runs",
      oninput: () => this.arrange(),
    });
    this.chips = make("div", { class: "chips", role: "group", "aria-label": "Filter by status" });
    this.grid = make("div", { class: "games" });
    this.body = make("tbody");
    this.heads = COLUMNS.map(([name, meaning], index) => make(
      "th", { scope: "col", title: meaning }, make("button", { type: "button", onclick: () => this.sort(index) }, name),
    ));
    this.empty = make("p", { class: "empty" }, "No runs yet. They appear here as they begin: ", make("code", {}, "coex train freeway --method a2c+coex"));
    this.table = make(
      "div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of runs" },
      make("table", { class: "runs" }, make("caption", { class: "unseen" }, "All runs"), make("thead", {}, make("tr", {}, this.heads)), this.body),
    );
    this.element = make(
      "div", {}, make("h1", { class: "unseen" }, "Runs"),
      make("section", { "aria-label": "Curves by game" }, this.grid), this.films, this.gridList,
      make("section", {}, make("div", { class: "bar" }, make("h2", {}, "Runs"), this.filter, this.chips), this.empty, this.table),
    );
  }

  update({ runs, gone, games, grids }) {
    gone.forEach((key) => { this.runs.delete(key); this.rows.get(key)?.row.remove(); this.rows.delete(key); });
    runs.forEach((run) => this.runs.set(run.id, run));
    const present = new Set([...this.runs.values()].map((run) => run.game));
    for (const name of [...this.games.keys()].filter((game) => !present.has(game))) this.drop(name);
    Object.entries(games).forEach(([game, groups]) => this.updateGame(game, groups));
    runs.forEach((run) => this.updateRow(run));
    for (const { label, each } of Object.values(games).flat()) {  // in the table as in the curves
      each.forEach(({ id }) => { this.rows.get(id).link.className = `method c${methodColour(label)}`; });
    }
    if (grids) this.gridList.replaceChildren(...grids.map((grid) => this.updateGrid(grid)));
    this.arrange();
  }

  updateGrid({ name, runs }) {  // its runs by state, with what went wrong
    if (!this.grids.has(name)) {
      const words = make("span"), bar = make("progress", { "aria-label": "Finished runs" }), rows = make("tbody");
      const heads = ["run", "state", "attempts", "last error"].map((head) => make("th", { scope: "col" }, head));
      const table = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Runs of the grid ${name}` },
        make("table", {}, make("thead", {}, make("tr", {}, heads)), rows));
      this.grids.set(name, { words, bar, rows, element: make("details", { class: "grid" }, make("summary", {}, `Grid ${name}`, words, bar), table) });
    }
    const { words, bar, rows, element } = this.grids.get(name);
    const states = GRID_STATES.map((state) => [state, runs.filter((run) => run.state === state)]);
    setText(words, `${plural(runs.length, "run")}: ${states.map(([state, those]) => `${those.length} ${state}`).join(", ")}`);
    bar.max = runs.length;
    bar.value = runs.filter((run) => run.state === "finished").length;
    rows.replaceChildren(...states.flatMap(([, those]) => those).map((run) => make(
      "tr", {}, make("th", { scope: "row" }, run.id ? make("a", { href: `#/run/${run.id}` }, run.name) : run.name),
      make("td", {}, badge(run.state)), make("td", {}, whole(run.attempts)), make("td", {}, run.error),
    )));
    return element;
  }

  updateGame(game, groups) {
    groups.forEach((group) => methodColour(group.label));
    const curves = groups.filter((group) => group.curve);
    const shape = JSON.stringify(curves.map((group) => [group.label, group.each.map((one) => one.id), Boolean(group.curve.low)]));
    let entry = this.games.get(game);
    if (entry && entry.shape !== shape) this.drop(game);
    entry = this.games.get(game);
    const { data, series, marks } = this.gameData(curves);
    if (!entry) {
      const seeds = Math.max(...groups.map((group) => group.seeds.length));
      const chart = new Chart({
        title: game, unit: `mean return of 40 episodes${seeds > 1 ? ", over seeds" : ""}`, series, data, marks, height: 200,
      });
      entry = { chart, shape, scores: make("table", { class: "scores" }), costs: make("table", { class: "scores" }) };
      chart.element.append(make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Scores on ${game}` }, entry.scores, entry.costs));
      this.games.set(game, entry);
      const after = [...this.games.keys()].sort();
      this.grid.replaceChildren(...after.map((name) => this.games.get(name).chart.element));
    } else {
      entry.chart.setData(data);
    }
    const budget = groups[0]?.budget ?? 0, played = groups.some((group) => group.played);
    entry.costs.replaceChildren(...(groups.length > 1 ? this.costRows(groups) : []));
    entry.scores.replaceChildren(
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "method"), make("th", { scope: "col" }, `best by ${count(budget)}`), played ? make("th", { scope: "col", title: "games that coex eval played with the newest checkpoint" }, "played") : "", make("th", { scope: "col" }, "paper"))),
      make("tbody", {}, groups.map((group) => make(
        "tr", {}, make("th", { scope: "row", class: `c${methodColour(group.label)}` }, group.label, make("small", {}, ` ${plural(group.seeds.length, "seed")}`)),
        make("td", {}, make("b", {}, number(group.score?.middle)), group.score?.seeds > 1 ? make("small", {}, ` ${number(group.score.low)}–${number(group.score.high)}`) : ""),
        played ? make("td", {}, make("b", {}, number(group.played?.[0])), group.played ? make("small", {}, ` ${plural(group.played[1], "game")}`) : "") : "",
        make("td", {}, group.paper ? number(group.paper[0]) : "–", group.paper ? make("small", {}, ` at ${count(group.paper[1])}`) : ""),
      ))),
    );
  }

  // What the methods found, and what they cost: medians over seeds.
  costRows(groups) {
    const target = groups[0]?.costs.target ?? 0;
    const heads = [
      ["method", ""], ["rooms", "rooms reached, by RAM"], ["states", "states counted"], ["steps/s", "agent steps a second"],
      ["memory", "the most that the learning process held, without the emulators' processes"],
      [`${number(target)} after`, `when the mean return of 40 episodes first was ${number(target)}`],
    ];
    const rows = groups.map(({ label, costs }) => make(
      "tr", {}, make("th", { scope: "row", class: `c${methodColour(label)}` }, label),
      make("td", {}, costs.rooms === null ? "–" : number(costs.rooms)),
      make("td", {}, costs.states === null ? "–" : count(costs.states)),
      make("td", {}, costs.rate === null ? "–" : number(costs.rate)),
      make("td", {}, costs.memory === null ? "–" : `${number(costs.memory / 1e6)} MB`),
      make("td", {}, costs.reached ? `${count(costs.reached[0])} steps, ${duration(costs.reached[1])}` : "–", costs.reached ? make("small", {}, ` ${costs.reached[2]} of ${plural(costs.reached[3], "seed")}`) : ""),
    ));
    return [
      make("thead", {}, make("tr", {}, heads.map(([name, meaning]) => make("th", { scope: "col", title: meaning }, name)))),
      make("tbody", {}, rows),
    ];
  }

  gameData(groups) {
    const all = groups.flatMap((group) => [group.curve, ...group.each]);
    const first = Math.min(...all.map((one) => one.steps[0] ?? Infinity));
    const last = Math.max(...all.map((one) => one.steps[one.steps.length - 1] ?? -Infinity));
    const size = last > first ? 160 : 1;
    const grid = all.length ? Array.from({ length: size }, (_, i) => first + (last - first) * i / Math.max(size - 1, 1)) : [];
    const data = [grid], series = [], marks = [];
    for (const group of groups) {
      const colour = methodColour(group.label), { steps, middle, low, high } = group.curve;
      if (low) {
        data.push(interpolate(grid, steps, high), interpolate(grid, steps, low));
        series.push({ colour, hidden: true, width: 0, band: [data.length - 2, data.length - 1] }, { colour, hidden: true, width: 0 });
      }
      if (group.each.length > 1) group.each.forEach((one) => {
        data.push(interpolate(grid, one.steps, one.middle));
        series.push({ colour, faint: true, width: 1 });
      });
      data.push(interpolate(grid, steps, middle));
      series.push({ colour, label: group.label, width: 2.2, always: true });
      if (group.paper) marks.push({ value: group.paper[0], label: `paper: ${number(group.paper[0])}`, colour });
    }
    return { data, series, marks: marks.filter((mark, index) => marks.findIndex((other) => other.value === mark.value) === index) };
  }

  drop(game) {
    const entry = this.games.get(game);
    entry.chart.element.remove();
    entry.chart.destroy();
    this.games.delete(game);
  }

  updateRow(run) {
    let entry = this.rows.get(run.id);
    if (!entry) {
      const cells = COLUMNS.map(() => make("td"));
      const bar = make("progress", { max: "1", "aria-label": "Progress" });
      const link = make("a", { href: `#/run/${run.id}`, class: "method" });
      entry = { row: make("tr", { onclick: (event) => { if (!event.target.closest("a")) location.hash = `#/run/${run.id}`; } }, cells), cells, bar, link, text: make("span") };
      cells[4].append(bar, entry.text);
      cells[2].append(link);
      this.rows.set(run.id, entry);
    }
    const { cells, link, bar, text } = entry, { newest } = run;
    if (entry.status !== run.status) cells[0].replaceChildren(badge(run.status));
    entry.status = run.status;
    setText(cells[1], run.game);
    setText(link, run.variant);
    link.title = run.variant;  // cut after two lines
    setText(cells[3], String(run.seed));
    bar.value = run.total ? Math.min((newest.step ?? 0) / run.total, 1) : 0;
    setText(text, `${count(newest.step ?? 0)} of ${count(run.total)}`);
    const words = [number(newest.return_mean40), number(newest.max_return_mean40), whole(roomsOf(newest)), whole(newest.steps_per_second), duration(remaining(run)), run.name];
    words.forEach((word, index) => setText(cells[5 + index], word));
  }

  sort(column) {
    this.sortBy = { column, down: this.sortBy.column === column ? !this.sortBy.down : false };
    this.arrange();
  }

  arrange() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const statuses = ["all", ...new Set([...this.runs.values()].map((run) => run.status))];
    if (!statuses.includes(this.status)) this.status = "all";
    const chosen = [...this.runs.values()].filter((run) => {
      const text = `${run.game} ${run.variant} seed ${run.seed} ${run.name} ${run.status}`.toLowerCase();
      return words.every((word) => text.includes(word)) && (this.status === "all" || run.status === this.status);
    });
    const value = COLUMNS[this.sortBy.column][2], sign = this.sortBy.down ? -1 : 1;
    const order = { running: 3, finished: 2, stopped: 1, broken: 0 };
    chosen.sort((a, b) => {
      const [left, right] = this.sortBy.column === 0 ? [order[a.status], order[b.status]] : [value(a), value(b)];
      if (left === right) return b.updated - a.updated || a.name.localeCompare(b.name);
      if (left === undefined || left === null) return 1;
      if (right === undefined || right === null) return -1;
      return sign * (left < right ? -1 : 1);
    });
    const rows = chosen.map((run) => this.rows.get(run.id).row);
    if (rows.length !== this.body.children.length || rows.some((row, index) => this.body.children[index] !== row)) this.body.replaceChildren(...rows);
    this.heads.forEach((head, index) => head.setAttribute("aria-sort", index !== this.sortBy.column ? "none" : this.sortBy.down ? "descending" : "ascending"));
    this.empty.hidden = this.runs.size > 0;
    this.table.hidden = !this.runs.size;
    const chips = statuses.map((status) => `${status}${status === this.status}${this.runs.size}`).join();
    if (chips !== this.chipped) {
      this.chipped = chips;
      this.chips.replaceChildren(...(statuses.length > 2 ? statuses : []).map((status) => make(
        "button", { type: "button", "aria-pressed": String(status === this.status), onclick: () => { this.status = status; this.arrange(); } }, status,
      )));
    }
  }
}
