// The fabric drawn: links by direction in the colours of their use, with numbers; queues, pauses, paths.
// Lengths are in units of the least distance of two switches.

import { level, svg } from "./words.js";

const LANE = 0.02; // of a host's link, from its middle
const QUEUE_AT = 0.3; // of a line, from the sender
const NUMBER_AT = [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74]; // of a line: the first that is free
const CHAR_LEAST = 9.5; // pixels, the least height of a number

function along(line, share) {
  const lengths = line.slice(1).map(([x, y], at) => Math.hypot(x - line[at][0], y - line[at][1]));
  let left = share * lengths.reduce((a, b) => a + b, 0);
  for (let at = 0; at < lengths.length; at += 1) {
    if (left <= lengths[at] || at === lengths.length - 1) {
      const [[x, y], [nextX, nextY]] = [line[at], line[at + 1]];
      const part = lengths[at] ? left / lengths[at] : 0;
      const length = lengths[at] || 1;
      // The point, and what is to the right of somebody who goes along there.
      return { x: x + part * (nextX - x), y: y + part * (nextY - y), right: [-(nextY - y) / length, (nextX - x) / length] };
    }
    left -= lengths[at];
  }
  return { x: line[0][0], y: line[0][1], right: [0, 0] };
}

const points = (line) => line.map((point) => point.join(",")).join(" ");

export class Drawing {
  // `pick` is told what is chosen: ("link", number), ("host", number) or ("switch", number).
  constructor(element, fabric, pick) {
    this.element = element;
    this.fabric = fabric;
    this.channels = fabric.channels.length;
    element.style.minWidth = `${Math.round(58 * fabric.width)}px`;
    element.style.maxWidth = `${Math.round(190 * fabric.width)}px`;
    this.halos = svg("g");
    this.lines = fabric.lines.map((line, channel) =>
      svg("polyline", { id: `channel-${channel}`, class: "channel", points: points(line) }));
    this.stubs = this.makeStubs();
    this.dots = fabric.hosts.map((host) => svg("circle", { class: "host", cx: host.at[0], cy: host.at[1], r: 0.045 }));
    this.queues = [
      ...fabric.lines.map((line) => along(line, QUEUE_AT)),
      ...fabric.hosts.map((host) => along([fabric.switches[host.switch].at, host.at], 0.6)),
    ].map(({ x, y }) => svg("circle", { class: "queue", cx: x, cy: y, r: 0 }));
    this.crosses = fabric.links.map((_, link) => this.cross(link));
    this.numbers = fabric.lines.map(() => svg("text", { class: "load" }));
    const [wide, high] = fabric.box;
    this.boxes = fabric.switches.map(({ at: [x, y] }) =>
      svg("rect", { class: "box", x: x - wide / 2, y: y - high / 2, width: wide, height: high, rx: 0.05 }));
    const boxes = fabric.switches.map(({ name, at: [x, y] }, number) => svg(
      "g", {},
      this.boxes[number],
      svg("text", { class: "name", x, y, ...(name.length > 6 ? { textLength: wide * 0.9, lengthAdjust: "spacingAndGlyphs" } : {}) }, name),
      svg("rect", {
        class: "pick", id: `switch-${number}`, x: x - wide / 2, y: y - high / 2, width: wide, height: high,
        onclick: () => pick("switch", number),
      }, svg("title", {}, name)),
    ));
    const hits = fabric.links.map(({ name }, link) => svg("polyline", {
      class: "hit", id: `link-${link}`, points: points(this.middle(link)), onclick: () => pick("link", link),
    }, svg("title", {}, name)));
    const reach = fabric.hosts.length <= fabric.switches.length ? 0.13 : 0.06;
    const hostHits = fabric.hosts.map(({ name, at: [x, y] }, host) => svg("circle", {
      class: "pick", id: `host-${host}`, cx: x, cy: y, r: reach, onclick: () => pick("host", host),
    }, svg("title", {}, name)));
    element.replaceChildren(
      this.halos, ...this.stubs.flat(), ...this.lines, ...this.queues, ...this.crosses, ...this.dots, ...boxes,
      ...this.numbers, ...hits, ...hostHits,
    );
    this.fit();
    new ResizeObserver(() => this.fit()).observe(element);
  }

  middle(link) {
    const back = this.fabric.lines[2 * link + 1].slice().reverse();
    return this.fabric.lines[2 * link].map(([x, y], at) => [(x + back[at][0]) / 2, (y + back[at][1]) / 2]);
  }

  makeStubs() {
    return [0, 1].map((way) => this.fabric.hosts.map((host) => {
      const [[x, y], [endX, endY]] = [this.fabric.switches[host.switch].at, host.at];
      const length = Math.hypot(endX - x, endY - y) || 1;
      const [sideX, sideY] = [(-(endY - y) / length) * LANE, ((endX - x) / length) * LANE].map((one) => (way ? -one : one));
      return svg("line", { class: "stub", x1: x + sideX, y1: y + sideY, x2: endX + sideX, y2: endY + sideY });
    }));
  }

  cross(link) {
    const { x, y } = along(this.middle(link), 0.5);
    const stroke = (sign) => svg("line", { class: "cross", x1: x - 0.06, y1: y - 0.06 * sign, x2: x + 0.06, y2: y + 0.06 * sign });
    return svg("g", { visibility: "hidden" }, stroke(1), stroke(-1));
  }

  // Numbers are as large as the lines leave room for, and legible; each beside the middle of its line, or where no other
  // number is; and the picture is as large as they need.
  fit() {
    const { width, height } = this.fabric;
    const size = Math.max(0.085, CHAR_LEAST / (this.element.clientWidth / width || 100));
    if (size === this.size) return;
    this.size = size;
    const [wide, high] = [2.2 * size, 1.1 * size]; // of three digits
    const [boxWide, boxHigh] = this.fabric.box;
    const apart = (from, across, down) => ([x, y]) => Math.abs(from[0] - x) >= across || Math.abs(from[1] - y) >= down;
    const boxes = this.fabric.switches.map(({ at }) => apart(at, (boxWide + wide) / 2, (boxHigh + high) / 2));
    const taken = [];
    this.numbers.forEach((text, channel) => {
      const places = NUMBER_AT.map((share) => {
        const { x, y, right } = along(this.fabric.lines[channel], share);
        const aside = 0.05 + size * (Math.abs(right[0]) > 0.7 ? 0.95 : 0.5);
        return [x + right[0] * aside, y + right[1] * aside];
      });
      const clear = (place) => boxes.every((apart) => apart(place)) && taken.every((other) => apart(other, wide, high)(place));
      const [x, y] = places.find(clear) ?? places[0];
      taken.push([x, y]);
      text.setAttribute("x", x);
      text.setAttribute("y", y);
      text.style.fontSize = `${size}px`;
    });
    const beyond = ([x, y]) => Math.max(wide / 2 - x, x + wide / 2 - width, high / 2 - y, y + high / 2 - height);
    const edge = Math.max(0, ...taken.map(beyond));
    this.element.setAttribute("viewBox", `${-edge} ${-edge} ${width + 2 * edge} ${height + 2 * edge}`);
  }

  update(reading, links, killed, cycle) {
    const inCycle = new Set(cycle);
    const paused = reading.paused ?? [];
    for (let channel = 0; channel < this.channels; channel += 1) {
      const used = reading.use[channel];
      const down = links[channel >> 1]?.up === false;
      const kinds = ["channel"];
      if (level(used) >= 0) kinds.push(`h${level(used)}`);
      if (down) kinds.push("down");
      if (paused[channel] >= 50) kinds.push("paused");
      if (inCycle.has(channel)) kinds.push("cycle");
      this.mark(this.lines[channel], kinds.join(" "));
      this.write(this.numbers[channel], down || used < 5 ? "" : String(Math.round(used / 10)));
    }
    const hosts = this.fabric.hosts.length;
    for (let host = 0; host < hosts; host += 1) {
      for (const way of [0, 1]) {
        const found = level(reading.use[this.channels + way * hosts + host]);
        this.mark(this.stubs[way][host], found < 0 ? "stub" : `stub h${found}`);
      }
    }
    this.queues.forEach((queue, port) => {
      const radius = reading.waiting[port] ? Math.min(0.02 + 0.012 * Math.log2(1 + reading.waiting[port]), 0.09) : 0;
      if (queue.last !== radius) queue.setAttribute("r", (queue.last = radius));
    });
    this.boxes.forEach((box, number) => this.mark(box, killed.includes(this.fabric.switches[number].name) ? "box dead" : "box"));
    this.crosses.forEach((cross, link) => {
      const shown = links[link]?.up === false ? "visible" : "hidden";
      if (cross.last !== shown) cross.setAttribute("visibility", (cross.last = shown));
    });
  }

  mark(element, kinds) {
    if (element.last !== kinds) element.setAttribute("class", (element.last = kinds));
  }

  write(element, text) {
    if (element.last !== text) element.textContent = element.last = text;
  }

  // What is chosen: links, hosts, and the hops of a path and of its backup, each a list of channels.
  choose(links, hosts, way = [], backup = []) {
    const halo = (kind) => (line) => svg("polyline", { class: `halo ${kind}`, points: points(line) });
    const hops = (path) => path.flat().map((channel) => this.fabric.lines[channel]);
    const edges = way.length || hosts.length > 1
      ? hosts.map((host) => [this.fabric.switches[this.fabric.hosts[host].switch].at, this.fabric.hosts[host].at]) : [];
    this.halos.replaceChildren(
      ...links.map((link) => halo("chosen")(this.middle(link))),
      ...edges.map(halo("way")), ...hops(way).map(halo("way")), ...hops(backup).map(halo("backup")),
    );
    this.dots.forEach((dot, host) => this.mark(dot, hosts.includes(host) ? "host chosen" : "host"));
  }
}

// What colours and signs mean.
export function legend() {
  const scale = svg("svg", { width: 96, height: 10 }, ...Array.from({ length: 12 }, (_, step) =>
    svg("line", { class: `key h${step}`, x1: step * 8, x2: step * 8 + 8, y1: 5, y2: 5, "stroke-width": 10 })));
  const sign = (...parts) => svg("svg", { width: 26, height: 12, viewBox: "0 0 .26 .12" }, ...parts);
  const line = (kind) => svg("line", { class: kind, x1: 0.01, x2: 0.25, y1: 0.06, y2: 0.06 });
  return [
    ["use 0", scale, "100 %"],
    ["", sign(svg("circle", { class: "queue", cx: 0.13, cy: 0.06, r: 0.05 })), "frames wait"],
    ["", sign(line("channel paused h6")), "paused"],
    ["", sign(line("channel down")), "down"],
    ["", sign(line("halo way")), "path"],
    ["", sign(line("halo backup")), "backup"],
  ].map(([before, picture, after]) => {
    const found = document.createElement("span");
    if (before) {
      const framed = document.createElement("span");
      framed.className = "scale";
      framed.append(picture);
      found.append(before, framed, after);
    } else found.append(picture, after);
    return found;
  });
}
