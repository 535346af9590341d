"use strict";
// All runs: small curves by game, grids, and a table.

const STATUSES = ["broken", "stopped", "finished", "running"];  // in the order of interest, which a table has from below
const GRID_STATES = ["given up", "running", "waiting", "finished"];
const MOST_ROWS = 50;  // before somebody asks for all

const COLUMNS = [  // name, meaning, what it is sorted by, how that is shown
  ["status", "status", (run) => STATUSES.indexOf(run.status), (_, run) => h(Badge, run)],
  ["game", "game", (run) => run.game],
  ["method", "method", (run) => run.variant, (variant, run) => h(
    "a", { class: `method c${run.colour}`, href: `#/run/${run.id}`, title: variant }, variant,  // cut after two lines
  )],
  ["seed", "seed", (run) => run.seed],
  ["progress", "progress", (run) => Math.min((run.newest.step ?? 0) / (run.total || 1), 1), (share, run) => [
    h("progress", { value: share, "aria-label": "Progress" }),
    h("span", {}, `${count(run.newest.step ?? 0)} of ${count(run.total)}`),
  ]],
  ["return", "return of the last 40", (run) => run.newest.return_mean40, number],
  ["best", "best mean of 40", (run) => run.newest.max_return_mean40, number],
  ["rooms", "rooms reached", roomsOf, whole],
  ["steps/s", "agent steps a second", (run) => run.newest.steps_per_second, whole],
  ["left", "time left", remaining, duration],
  ["name", "directory", (run) => run.name],
];

class Overview extends Component {
  constructor() {
    super();
    this.state = Overview.left ?? { text: "", status: "all", column: 0, down: true, all: false };
  }

  componentWillUnmount() {  // who comes back finds it as it was
    Overview.left = this.state;
  }

  chosen(runs) {
    const { text, status, column, down } = this.state, words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const value = COLUMNS[column][2];
    return runs.filter((run) => {
      const said = `${run.game} ${run.variant} seed ${run.seed} ${run.name} ${run.status}`.toLowerCase();
      return words.every((word) => said.includes(word)) && (status === "all" || run.status === status);
    }).sort((a, b) => {
      const left = value(a) ?? null, right = value(b) ?? null;
      if (left === right) return b.updated - a.updated || a.name.localeCompare(b.name);
      if (left === null || right === null) return left === null ? 1 : -1;
      return (left < right) === down ? 1 : -1;
    });
  }

  render({ runs, games, grids, films }, { text, status, column, down, all }) {
    const colours = {}, statuses = ["all", ...new Set(runs.map((run) => run.status))];
    for (const { label, runs: keys } of Object.values(games).flat()) keys.forEach((key) => { colours[key] = methodColour(label); });
    const chosen = this.chosen(runs), shown = all ? chosen : chosen.slice(0, MOST_ROWS);
    const isFiltered = chosen.length < runs.length, present = new Set(chosen.map((run) => run.game));
    const heads = COLUMNS.map(([name, meaning], index) => [
      name, { title: meaning, "aria-sort": index !== column ? "none" : down ? "descending" : "ascending" },
      h("button", { type: "button", onClick: () => this.setState({ column: index, down: index === column && !down }) }, name),
    ]);
    const toggle = (name) => h(
      "button", { type: "button", "aria-pressed": String(name === status), onClick: () => this.setState({ status: name }) }, name,
    );
    const row = (run) => h(
      "tr", { key: run.id, onClick: (event) => { if (!event.target.closest("a")) location.hash = `#/run/${run.id}`; } },
      COLUMNS.map(([name, , value, show = String]) => h("td", { "data-name": name }, show(value(run), { ...run, colour: colours[run.id] }))),
    );
    return h(
      "div", {}, h("h1", { class: "unseen" }, "Runs"),
      h("section", { class: "games", "aria-label": "Curves by game" }, Object.keys(games).sort()
        .filter((game) => !isFiltered || present.has(game)).map((game) => h(Game, { key: game, game, groups: games[game] }))),
      films.length > 0 && h("div", { class: "films" }, films.map((film) => h(Film, film))),
      h("section", { "aria-label": "Grids" }, grids.map((grid) => h(Grid, { key: grid.name, ...grid }))),
      h("section", {},
        h("div", { class: "bar" }, h("h2", {}, "Runs"), h("input", {
          type: "search", value: text, placeholder: "Filter by game, method, seed …", "aria-label": "Filter the runs",
          onInput: (event) => this.setState({ text: event.target.value }),
        }), h("div", { class: "chips", role: "group", "aria-label": "Filter by status" }, statuses.length > 2 && statuses.map(toggle))),
        runs.length ? h(Table, { label: "Table of runs", class: "runs", heads }, shown.map(row))
          : h("p", { class: "empty" }, "No runs yet. They appear here as they begin: ", h("code", {}, "coex train freeway --method a2c+coex")),
        shown.length < chosen.length && h("p", {}, h(
          "button", { type: "button", onClick: () => this.setState({ all: true }) }, `Show all ${plural(chosen.length, "run")}`,
        ))),
    );
  }
}

function Film({ film, film_caption: caption }) {  // of a report
  return h("figure", { class: "film" },
    h("video", { controls: true, muted: true, loop: true, playsinline: true, src: film }), h("figcaption", { class: "quiet" }, caption));
}

function Grid({ name, runs }) {  // its runs by state, with what went wrong
  const states = GRID_STATES.map((state) => [state, runs.filter((run) => run.state === state)]);
  const words = states.filter(([, those]) => those.length).map(([state, those]) => `${those.length} ${state}`).join(", ");
  return h(
    "details", { class: "grid" },
    h("summary", {}, `Grid ${name}`, h("span", {}, `${plural(runs.length, "run")}: ${words}`),
      h("progress", { "aria-label": "Finished runs", max: runs.length, value: states[3][1].length })),
    h(Table, { label: `Runs of the grid ${name}`, heads: [["run"], ["state"], ["attempts"], ["last error"]] },
      states.flatMap(([, those]) => those).map((run) => h(
        "tr", { key: run.name }, h("th", { scope: "row" }, run.id ? h("a", { href: `#/run/${run.id}` }, run.name) : run.name),
        h("td", {}, h(Badge, { status: run.state })), h("td", {}, whole(run.attempts)), h("td", {}, run.error),
      ))),
  );
}

class Game extends Component {
  shouldComponentUpdate({ groups }) {
    return groups !== this.props.groups;
  }

  render({ game, groups }) {  // more methods than colours: a chart for each learner
    const parts = new Map();
    for (const group of groups) {
      const name = groups.length > NUM_COLOURS ? `${game} · ${group.label.split(/[+, ]/)[0]}` : game, part = parts.get(name) ?? [];
      methodColour(group.label);
      parts.set(name, [...part, { ...group, dash: dashOf(part.length) }]);
    }
    const seeds = Math.max(...groups.map((group) => group.seeds.length)), [{ shared }] = groups;
    const unit = `mean return of 40 episodes${seeds > 1 ? ", over seeds" : ""}${shared ? `; all with ${shared}` : ""}`;
    return [...parts].map(([title, part]) => h(
      Chart, { key: title, title, unit, height: 200, ...gameCurves(part) }, h(Scores, { game: title, groups: part }),
    ));
  }
}

// The scores of a game's methods; of several also what they found and what they cost: medians over seeds.
function Scores({ game, groups }) {
  const [{ budget, costs: { target } }] = groups;
  const columns = [  // name, meaning, value, how that is shown
    [`best by ${count(budget)}`, "", ({ score }) => score, ({ middle, low, high, seeds }) => [h("b", {}, number(middle)), seeds > 1 && `${number(low)}–${number(high)}`]],
    ["played", "games that coex eval played with the newest checkpoint", ({ played }) => played, ([mean, games]) => [h("b", {}, number(mean)), plural(games, "game")]],
    ["paper", "", ({ paper }) => paper, ([value, steps]) => [number(value), `at ${count(steps)}`]],
    ...groups.length > 1 ? [
      ["rooms", "rooms reached, by RAM", ({ costs }) => costs.rooms, (rooms) => [number(rooms)]],
      ["states", "states counted", ({ costs }) => costs.states, (states) => [count(states)]],
      ["steps/s", "agent steps a second", ({ costs }) => costs.rate, (rate) => [number(rate)]],
      ["memory", "the most that the learning process held, without the emulators' processes", ({ costs }) => costs.memory, (bytes) => [`${number(bytes / 1e6)} MB`]],
      [`${number(target)} after`, `when the mean return of 40 episodes first was ${number(target)}`, ({ costs }) => costs.reached ?? (target > 0 ? [] : null),
        ([steps, seconds, reached, seeds]) => (reached ? [`${count(steps)} steps`, `${duration(seconds)}, ${reached} of ${plural(seeds, "seed")}`] : ["–"])],
    ] : [],
  ].filter(([, , value]) => groups.some((group) => value(group) !== null));  // a column that nobody has a value for is left out
  const cell = ([text, more]) => h("td", {}, text, more && h("small", {}, more));
  const heads = [["method"], ...columns.map(([name, title]) => [name, { title }])];
  return h(Table, { label: `Scores on ${game}`, class: "scores", heads }, groups.map((group) => h(
    "tr", {}, h("th", { scope: "row", class: `c${methodColour(group.label)}${group.dash ? " dashed" : ""}` }, group.short, h("small", {}, plural(group.seeds.length, "seed"))),
    columns.map(([, , value, show]) => cell(value(group) === null ? ["–"] : show(value(group)))),
  )));
}

function gameCurves(groups) {  // seeds faint, their middle on top, with a band
  const data = [groups[0].steps], series = [], marks = new Map();
  const add = (values, look) => series.push(look) && data.push(values);
  for (const { label, short, dash, curves: { middle, low, high, each }, paper } of groups.filter((group) => group.curves.each.length)) {
    const colour = methodColour(label);
    if (each.length > 1) {
      add(high, { colour, hidden: true, width: 0, band: [data.length, data.length + 1] });
      add(low, { colour, hidden: true, width: 0 });
      each.forEach((values) => add(values, { colour, faint: true, width: 1 }));
    }
    add(middle, { colour, dash, label: short, width: 2.2, always: true });
    if (paper && !marks.has(paper[0])) marks.set(paper[0], { value: paper[0], label: `paper: ${number(paper[0])}`, colour });
  }
  return { data, series, marks: [...marks.values()] };
}
