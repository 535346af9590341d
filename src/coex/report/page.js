// Shows the values under the pointer. Without it the page says everything it has to.
const nearest = (points, x) =>
  points.reduce((best, point) => (Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best));

for (const plot of document.querySelectorAll(".plot")) {
  const lines = [...plot.querySelectorAll("[data-points]")].map((path) => ({
    name: path.dataset.name,
    points: path.dataset.points.split(";").map((point) => point.split(",").map(Number)),
  }));
  const tip = plot.appendChild(document.createElement("output"));
  const rule = plot.appendChild(document.createElement("i"));
  tip.hidden = rule.hidden = true;
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    const x = (1000 * (event.clientX - box.left)) / box.width;
    const found = lines.map((line) => [line.name, nearest(line.points, x)]);
    const [across, , step] = found[0][1];
    tip.textContent = [
      `step ${step.toLocaleString("en")}`,
      ...found.map(([name, point]) => `${name ? name + ": " : ""}${point[3].toLocaleString("en")}`),
    ].join("\n");
    tip.hidden = rule.hidden = false;
    rule.style.left = `${across / 10}%`;
    tip.style[across < 500 ? "left" : "right"] = `${(across < 500 ? across : 1000 - across) / 10}%`;
    tip.style[across < 500 ? "right" : "left"] = "auto";
  });
  plot.addEventListener("pointerleave", () => (tip.hidden = rule.hidden = true));
}

// On paper nothing can be unfolded.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => (part.open = true)));
