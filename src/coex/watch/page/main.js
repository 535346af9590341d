"use strict";
// Which view is shown, and where its data come from: the server, again and again, or the page itself.

const report = JSON.parse(document.getElementById("embedded")?.textContent ?? "null");
const POLL_MS = 1500, LIVE_MS = 1000;
const known = { epoch: "", version: 0, runs: new Map(), games: {}, grids: [] };
let shown = null;  // {id, version, run, scene}; run is null when there is none of this name
let isLost = false;

async function ask(path, query) {
  if (report) return { runs: report.overview, run: report.runs[query.id], live: report.scenes[query.id] }[path] ?? null;
  const answer = await fetch(`api/${path}?${new URLSearchParams(query)}`);
  if (answer.status === 404) return null;
  if (!answer.ok) throw new Error(answer.statusText);
  return answer.json();
}

function oneAtATime(look) {  // nobody looks behind a hidden tab
  let isBusy = false;
  return async () => {
    if (document.hidden || isBusy) return;
    isBusy = true;
    await look().catch(() => { isLost = true; }).finally(() => { isBusy = false; });
    draw();
  };
}

const look = oneAtATime(async () => {
  const { epoch, version, runs, games } = known, news = await ask("runs", { since: version, epoch });
  if (news.epoch !== epoch) {  // another server, whose numbers of changes say nothing about these
    runs.clear();
    known.games = {};
    known.grids = [];
    if (shown) shown.version = 0;
  }
  news.gone.forEach((key) => runs.delete(key));
  news.runs.forEach((run) => runs.set(run.id, run));
  const present = new Set([...runs.values()].map((run) => run.game));
  known.games = Object.fromEntries(Object.entries({ ...known.games, ...news.games }).filter(([game]) => present.has(game)));
  Object.assign(known, { epoch: news.epoch, version: news.version, grids: news.grids ?? known.grids });
  isLost = false;
  const asked = shown, isKnown = runs.has(asked?.id), run = isKnown && await ask("run", { id: asked.id, since: asked.version, epoch: known.epoch });
  if (asked && !run) asked.run = null;
  else if (run?.columns) Object.assign(asked, { run, version: run.version });
});

const lookLive = oneAtATime(async () => {
  const asked = shown, scene = known.runs.has(asked?.id) && await ask("live", { id: asked.id });
  const newer = (part, mark) => (scene?.[part] && scene[part][mark] !== asked.scene[part]?.[mark] ? scene[part] : asked.scene[part]);
  if (scene) asked.scene = { ...scene, play: newer("play", "stamp"), map: newer("map", "step") };
});

function route() {
  const match = /^#\/run\/([0-9a-f]{12})$/.exec(location.hash), id = match?.[1] ?? report?.single;
  shown = id ? { id, version: 0, scene: {} } : null;
  draw();
  scrollTo(0, 0);
  if (match) document.getElementById("main").focus({ preventScroll: true });
  look().then(lookLive);
}

function onKey(event) {
  const filter = document.querySelector("input[type=search]"), isTyping = event.target === filter;
  if (event.key === "/" && filter && !isTyping) {
    event.preventDefault();
    filter.focus();
  } else if (event.key === "Escape" && isTyping) {
    filter.value = "";
    filter.dispatchEvent(new Event("input"));
    filter.blur();
  } else if (event.key === "Escape" && shown && !report?.single) {
    location.hash = "#/";
  }
}

function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

function App() {
  const runs = [...known.runs.values()], running = runs.filter((run) => run.status === "running"), run = shown?.run;
  const speed = running.reduce((sum, one) => sum + (one.newest.steps_per_second ?? 0), 0);
  const going = `${running.length} of ${plural(runs.length, "run")} going on · ${whole(speed)} steps/s`;
  const said = isLost ? "The server does not answer: is coex watch still running?" : report?.made ?? (running.length ? going : known.epoch ? plural(runs.length, "run") : "Looking for runs …");
  const films = Object.values(report?.scenes ?? {}).filter((scene) => scene.film);
  const isGone = run === null, isHere = run && known.runs.has(shown.id);
  document.title = run ? `${run.method} on ${run.game} · coex` : "Runs · coex";
  return [
    h("a", { class: "skip", href: "#main", onClick: skip }, "Skip to the content"),
    h("header", { class: "top" },
      h("a", { class: "brand", href: "#/" }, h("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" },
        h("path", { d: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5" }), h("circle", { cx: 12, cy: 12, r: 3.2 })), "coex"),
      h("p", { id: "state", class: isLost ? "lost" : running.length && !report ? "live" : null, role: isLost ? "alert" : null }, said)),
    h("main", { id: "main", tabindex: "-1" },
      isGone ? h("p", { class: "empty" }, "This run is not there (any more). ", h("a", { href: "#/" }, "All runs"))
        : isHere ? h(RunView, { key: shown.id, run, scene: shown.scene, single: report?.single })
          : !shown && known.epoch && h(Overview, { runs, games: known.games, grids: known.grids, films })),
  ];
}

function draw() {
  render(h(App), document.getElementById("page"));
}

addEventListener("hashchange", route);
addEventListener("keydown", onKey);
document.addEventListener("visibilitychange", look);
if (!report) {
  setInterval(look, POLL_MS);
  setInterval(lookLive, LIVE_MS);
}
route();
