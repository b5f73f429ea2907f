// A chart of one or two series over time, drawn as SVG.

import { svg } from "./words.js";

const WIDTH = 340, HEIGHT = 104, LEFT = 40, RIGHT = 6, TOP = 8, BOTTOM = 18;

export class Chart {
  // `label` names it, `unit` writes a value of its axis, `least` is the least value at the top.
  constructor(label, unit, least) {
    this.unit = unit;
    this.least = least;
    this.lines = ["first", "second"].map((name) => svg("polyline", { class: name }));
    this.top = svg("text", { x: LEFT - 4, y: TOP + 4, "text-anchor": "end" });
    this.from = svg("text", { x: LEFT, y: HEIGHT - 4 });
    this.to = svg("text", { x: WIDTH - RIGHT, y: HEIGHT - 4, "text-anchor": "end" });
    this.now = svg("line", { class: "now", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
    const axis = (y) => svg("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y });
    this.element = svg(
      "svg",
      { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label },
      axis(TOP), axis((TOP + HEIGHT - BOTTOM) / 2), axis(HEIGHT - BOTTOM),
      svg("text", { x: LEFT - 4, y: HEIGHT - BOTTOM + 3, "text-anchor": "end" }, "0"),
      this.top, this.from, this.to, ...this.lines, this.now,
    );
  }

  // `times` of all readings, `series` of values at them, `from` and `to` in words, and a moment to mark, or null.
  draw(times, series, from, to, moment = null) {
    if (times.length < 2) return;
    const high = Math.max(this.least, ...series.map((values) => values.reduce((a, b) => Math.max(a, b), 0)));
    const first = times[0], span = times[times.length - 1] - first || 1;
    const x = (time) => LEFT + ((WIDTH - LEFT - RIGHT) * (time - first)) / span;
    const y = (value) => HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - TOP) * value) / high;
    this.lines.forEach((line, number) => {
      const values = series[number] ?? [];
      line.setAttribute("points", values.map((value, at) => `${x(times[at]).toFixed(1)},${y(value).toFixed(1)}`).join(" "));
    });
    this.top.textContent = this.unit(high);
    this.from.textContent = from;
    this.to.textContent = to;
    this.now.setAttribute("visibility", moment === null ? "hidden" : "visible");
    if (moment !== null) {
      this.now.setAttribute("x1", x(moment));
      this.now.setAttribute("x2", x(moment));
    }
  }
}
