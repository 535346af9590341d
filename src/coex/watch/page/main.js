"use strict";
// Which view is shown, and where its data come from: the server, again and again, or the page itself.

const main = document.getElementById("main"), state = document.getElementById("state");
const embedded = document.getElementById("embedded");
const POLL_MS = 1500, LIVE_MS = 1000;

const server = {
  async ask(path, query) {
    const answer = await fetch(`${path}?${new URLSearchParams(query)}`);
    if (answer.status === 404) return null;
    if (!answer.ok) throw new Error(answer.statusText);
    return answer.json();
  },
  overview: (since, epoch) => server.ask("api/runs", { since, epoch }),
  run: (id, since, epoch) => server.ask("api/run", { id, since, epoch }),
  live: (id) => server.ask("api/live", { id }),
};

function saved(data) {  // a report: the same page with its data inside
  return {
    overview: async () => data.overview,
    run: async (id) => data.runs[id] ?? null,
    live: async (id) => data.scenes[id] ?? null,
  };
}

const report = embedded ? JSON.parse(embedded.textContent) : null;
const source = report ? saved(report) : server;

class Page {
  constructor() {
    this.overview = new Overview();
    this.version = 0;
    this.epoch = "";
    this.run = null;  // {id, view, version}
    this.reached = 0;
    addEventListener("hashchange", () => this.route());
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.beat(); });
    addEventListener("keydown", (event) => this.onKey(event));
    this.route();
    if (report) {
      this.overview.films.append(...Object.values(report.scenes).filter((scene) => scene.film).map(makeFilm));
    } else {
      setInterval(() => this.beat(), POLL_MS);
      setInterval(() => this.beatLive(), LIVE_MS);
    }
  }

  onKey(event) {
    const typing = event.target.closest("input, textarea");
    if (event.key === "/" && !typing && !this.run) {
      event.preventDefault();
      this.overview.filter.focus();
    } else if (event.key === "Escape" && typing) {
      typing.value = "";
      this.overview.arrange();
      typing.blur();
    } else if (event.key === "Escape" && this.run && !report?.single) {
      location.hash = "#/";
    }
  }

  route() {
    const match = /^#\/run\/([0-9a-f]{12})$/.exec(location.hash);
    const id = match ? match[1] : report?.single ?? null;
    if (this.run) {
      this.run.view.destroy();
      this.run = null;
    }
    if (id) {
      this.run = { id, view: new RunView(), version: 0 };
      if (report?.single) this.run.view.element.querySelector(".back").hidden = true;
    }
    document.title = "Runs · coex";
    main.replaceChildren(this.run ? this.run.view.element : this.overview.element);
    scrollTo(0, 0);
    if (match) main.focus({ preventScroll: true });
    this.beat();
    this.beatLive();
  }

  async beat() {
    if (document.hidden || this.asking) return;
    this.asking = true;
    try {
      await this.refresh();
      this.reached = Date.now();
      this.tell();
    } catch (error) {
      state.classList.add("lost");
      state.setAttribute("role", "alert");
      setText(state, "The server does not answer: is coex watch still running?");
    } finally {
      this.asking = false;
    }
  }

  async refresh() {
    const news = await source.overview(this.version, this.epoch);
    if (news.epoch !== this.epoch) news.gone = [...this.overview.runs.keys()].filter((id) => !news.runs.some((run) => run.id === id));
    if (this.run && news.epoch !== this.epoch) this.run.version = 0;
    this.version = news.version;
    this.epoch = news.epoch;
    if (news.runs.length || news.gone.length || news.grids) this.overview.update(news);
    const shown = this.run;
    if (!shown) return;
    const detail = await source.run(shown.id, shown.version, this.epoch);
    if (this.run !== shown) return;
    if (!detail) {
      main.replaceChildren(make("p", { class: "empty" }, "This run is not there (any more). ", make("a", { href: "#/" }, "All runs")));
      return;
    }
    if (!shown.view.element.isConnected) main.replaceChildren(shown.view.element);
    shown.version = detail.version;
    if (detail.columns) shown.view.update(detail);
  }

  async beatLive() {
    const shown = this.run;
    if (!shown || document.hidden || this.looking) return;
    this.looking = true;
    try {
      const scene = await source.live(shown.id);
      if (this.run === shown) await shown.view.show(scene);
    } catch {  // said by `beat`
    } finally {
      this.looking = false;
    }
  }

  tell() {
    state.classList.remove("lost");
    state.removeAttribute("role");
    const runs = [...this.overview.runs.values()], running = runs.filter((run) => run.status === "running");
    state.classList.toggle("live", running.length > 0);
    const speed = running.reduce((sum, run) => sum + (run.newest.steps_per_second ?? 0), 0);
    setText(state, report ? String(report.made ?? "") : running.length
      ? `${running.length} of ${plural(runs.length, "run")} going on · ${whole(speed)} steps/s` : plural(runs.length, "run"));
  }
}

new Page();
