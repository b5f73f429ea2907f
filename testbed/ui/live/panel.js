// What is told beside the fabric of what is chosen: a link, a switch, a host, or a pair of hosts.

import { Chart } from "./chart.js";
import { ask, bytes, html, percent, rate } from "./words.js";

const FIGURES = new Set(["use", "carries", "waiting", "lost", "paused", "sends", "receives"]);
const row = (...cells) => html("tr", {}, ...cells.map((cell) => (cell instanceof Node ? cell : html("td", {}, cell))));
const head = (...names) => html("tr", {}, ...names.map((name) => html("th", { scope: "col", class: FIGURES.has(name) ? "number" : null }, name)));
const number = (text) => html("td", { class: "number" }, text);
const put = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

function listed(numbers) {
  const parts = [];
  for (let at = 0; at < numbers.length; at += 1) {
    const first = numbers[at];
    while (numbers[at + 1] === numbers[at] + 1) at += 1;
    parts.push(first === numbers[at] ? `${first}` : `${first}–${numbers[at]}`);
  }
  return parts.join(", ");
}

// Each part has an `element` and is given readings by update(view).

export class LinkPart {
  constructor(view, link) {
    this.link = link;
    const { fabric } = view, about = fabric.links[link];
    this.directions = [2 * link, 2 * link + 1];
    this.state = html("p", { class: "muted", id: "link-state" });
    this.cells = this.directions.map(() => ({ use: number(""), rate: number(""), waiting: number(""), lost: number(""), paused: number("") }));
    const lossless = view.lossless();
    const names = ["direction", "use", "carries", "waiting", "lost", ...(lossless ? ["paused"] : [])];
    this.use = new Chart(`use of ${about.name} over time`, (value) => percent(value), 1000);
    this.queue = new Chart(`frames that wait at ${about.name} over time`, (value) => `${Math.round(value)}`, 4);
    this.element = html(
      "div", {}, html("h2", {}, `Link ${about.name}`), this.state,
      html("table", {}, head(...names), ...this.directions.map((direction, at) => {
        const cell = this.cells[at];
        const name = html("td", {}, html("span", { class: `swatch ${at ? "second" : "first"}` }), fabric.channels[direction]);
        return row(name, cell.use, cell.rate, cell.waiting, cell.lost, ...(lossless ? [cell.paused] : []));
      })),
      html("h3", {}, "Use"), this.use.element, html("h3", {}, "Frames waiting"), this.queue.element,
      ...(view.replay ? [] : this.buttons(view, about)),
      html("h3", {}, "VLANs"),
      html("p", { id: "link-vlans" }, about.vlans.length
        ? `Both ends are tagged members of VLAN ${listed(about.vlans)}.`
        : "It is a tagged member of no VLAN."),
      html("p", { class: "muted" }, about.ends.map((end, at) => `${fabric.switches[end].name} port ${about.ports[at]}`).join(" – ")),
    );
  }

  buttons(view, about) {
    const button = (text, id, values) => html("button", { type: "button", id, onclick: () => view.press(values()) }, text);
    this.toggle = button("Take down", "toggle", () => ({ do: view.links[this.link]?.up === false ? "up" : "down", link: this.link }));
    this.capture = button("Capture", "capture", () => ({ do: view.capturing.includes(about.name) ? "stop" : "capture", link: this.link }));
    const figure = (name, example) => html("label", {}, name, html("input", { name, placeholder: example, spellcheck: "false" }));
    const change = html(
      "form", {
        onsubmit: (event) => {
          event.preventDefault();
          view.press({ do: "change", link: this.link, ...Object.fromEntries(new FormData(change)) });
        },
      },
      html("div", { class: "figures" }, figure("rate", "100M"), figure("delay", "20us"), figure("loss", "1%")),
      html("div", { class: "buttons" }, html("button", { id: "change" }, "Change"), button("As planned", "reset", () => ({ do: "reset", link: this.link }))),
    );
    return [html("div", { class: "buttons" }, this.toggle, this.capture), change];
  }

  update(view) {
    const state = view.links[this.link] ?? { up: true };
    const planned = view.fabric.rates[2 * this.link];
    const now = state.rate ?? planned;
    const words = [state.up ? "up" : "down", rate(now) + (state.rate ? ` (${rate(planned)} planned)` : "")];
    if (state.delay) words.push(`delay ${Number((state.delay * 1e6).toPrecision(4))} µs more`);
    if (state.loss) words.push(`loss ${Number((state.loss * 100).toPrecision(3))} %`);
    put(this.state, words.join(", "));
    if (this.toggle) {
      put(this.toggle, state.up ? "Take down" : "Bring up");
      put(this.capture, view.capturing.includes(view.fabric.links[this.link].name) ? "Stop capture" : "Capture");
    }
    if (!view.reading) return;
    this.directions.forEach((direction, at) => {
      const cell = this.cells[at], use = view.reading.use[direction];
      put(cell.use, percent(use));
      put(cell.rate, rate((use / 1000) * now));
      put(cell.waiting, `${view.reading.waiting[direction]}`);
      put(cell.lost, `${view.reading.lost[direction]}`);
      if (view.reading.paused) put(cell.paused, percent(view.reading.paused[direction]));
    });
    const series = view.series(this.directions);
    if (series) {
      this.use.draw(series.times, series.use, series.from, series.to, series.moment);
      this.queue.draw(series.times, series.waiting, series.from, series.to, series.moment);
    }
  }
}

export class SwitchPart {
  constructor(view, number_) {
    const { fabric } = view;
    this.rows = [];
    const lines = fabric.links.flatMap((link, at) => link.ends.includes(number_)
      ? [[link.ports[link.ends.indexOf(number_)], link.name, () => view.pick("link", at), 2 * at + link.ends.indexOf(number_), 2 * at + 1 - link.ends.indexOf(number_)]] : []);
    const channels = fabric.channels.length, hosts = fabric.hosts.length;
    const edge = fabric.hosts.flatMap((host, at) => host.switch === number_
      ? [[host.port, host.name, () => view.pick("host", at), channels + at, channels + hosts + at]] : []);
    const table = html("table", {}, head("port", "to", "sends", "receives"));
    for (const [port, name, go, out, into] of [...edge, ...lines].sort((a, b) => a[0] - b[0])) {
      const cells = [number(""), number("")];
      this.rows.push({ cells, directions: [out, into] });
      table.append(row(`${port}`, html("td", {}, html("button", { type: "button", onclick: go }, name)), ...cells));
    }
    this.name = fabric.switches[number_].name;
    this.state = html("p", { class: "muted", id: "switch-state" });
    this.kill = view.replay ? null : html("button", {
      type: "button", id: "kill", onclick: () => view.press({ do: view.killed.includes(this.name) ? "start" : "kill", switch: number_ }),
    }, "Kill");
    this.element = html("div", {}, html("h2", {}, `Switch ${this.name}`),
      ...(this.kill ? [this.state, html("div", { class: "buttons" }, this.kill)] : []), table);
  }

  update(view) {
    if (this.kill) {
      const dead = view.killed.includes(this.name);
      put(this.state, dead ? "killed" : "running");
      put(this.kill, dead ? "Start" : "Kill");
    }
    if (!view.reading) return;
    for (const { cells, directions } of this.rows) {
      directions.forEach((direction, at) => put(cells[at], percent(view.reading.use[direction])));
    }
  }
}

export class HostPart {
  constructor(view, host) {
    this.host = host;
    const { fabric } = view, about = fabric.hosts[host];
    const channels = fabric.channels.length;
    this.directions = [channels + fabric.hosts.length + host, channels + host];
    this.sends = number("");
    this.receives = number("");
    this.flows = html("table", { id: "flows" });
    this.before = null;
    this.capture = view.replay ? null : html("button", {
      type: "button", id: "capture",
      onclick: () => view.press({ do: view.capturing.includes(about.name) ? "stop" : "capture", host }),
    }, "Capture");
    this.element = html(
      "div", {}, html("h2", {}, `Host ${about.name}`),
      html("p", { class: "muted" }, `${about.ip}, ${about.mac}, at ${fabric.switches[about.switch].name} port ${about.port}`
        + (about.vlan === null ? "" : `, PVID ${about.vlan}`)),
      html("table", {}, row("sends", this.sends), row("receives", this.receives)),
      html("p", {}, "Choose another host for the path to it."),
      ...(this.capture ? [html("div", { class: "buttons" }, this.capture)] : []),
      html("h3", {}, view.replay ? "Flows of the whole load" : "Flows"), this.flows,
    );
  }

  update(view) {
    if (this.capture) put(this.capture, view.capturing.includes(view.fabric.hosts[this.host].name) ? "Stop capture" : "Capture");
    if (!view.reading) return;
    [this.sends, this.receives].forEach((cell, at) => {
      const use = view.reading.use[this.directions[at]];
      put(cell, `${rate((use / 1000) * view.fabric.edge_rate)}, ${percent(use)}`);
    });
  }

  // Asked for once a second while it is shown.
  async refresh(view) {
    const now = await ask("host", { host: this.host, load: view.load });
    if (now.why_not) {
      this.flows.replaceChildren(row(now.why_not));
      return;
    }
    const past = this.before, lab = view.dilation;
    const pace = (kind, other) => {
      if (past === null || view.replay) return "";
      return rate((8 * (now[kind][other] - past[kind][other])) / (now.time - past.time) * lab);
    };
    const busy = view.fabric.hosts.map((_, other) => other).filter((other) => now.sent[other] || now.received[other]);
    busy.sort((a, b) => now.sent[b] + now.received[b] - now.sent[a] - now.received[a]);
    const told = (kind, other) => number([pace(kind, other), bytes(now[kind][other])].filter(Boolean).join(", "));
    this.flows.replaceChildren(
      ...(busy.length ? [head("with", "sends", "receives")] : [row("No frame has gone to another host yet.")]),
      ...busy.slice(0, 24).map((other) => row(
        html("td", {}, html("button", { type: "button", onclick: () => view.pick("host", other) }, view.fabric.hosts[other].name)),
        told("sent", other), told("received", other))),
    );
    this.before = now;
  }
}

export class PairPart {
  constructor(view, source, destination) {
    [this.source, this.destination] = [source, destination];
    const [from, to] = [source, destination].map((host) => view.fabric.hosts[host].name);
    this.list = html("table", { id: "hops" });
    this.note = html("p", { id: "way-note" });
    this.backups = html("div", { id: "backups" });
    this.element = html(
      "div", {}, html("h2", {}, `Path ${from} → ${to}`), this.note, this.list, this.backups,
      html("div", { class: "buttons" }, html("button", { type: "button", onclick: () => view.pair(destination, source) }, "The way back")),
    );
  }

  update(view) {
    if (this.told && this.links !== view.links) this.show(view, this.told);
  }

  async refresh(view) {
    this.show(view, await ask("way", { from: this.source, to: this.destination }));
  }

  show(view, way) {
    const { fabric } = view;
    this.told = way;
    this.links = view.links;
    const port = (channel) => fabric.links[channel >> 1].ports[channel & 1];
    const down = (channels) => channels.every((channel) => view.links[channel >> 1]?.up === false);
    const lost = way.hops.find((hop) => down(hop.channels));
    const tag = (hop) => (hop.vlan === undefined ? (view.replay ? "" : "untagged") : `${hop.vlan}${hop.priority ? `, priority ${hop.priority}` : ""}`);
    const note = lost ? `Frames are lost at ${fabric.channels[lost.channels[0]]}, which is down.`
      : !way.arrives ? "Frames do not arrive at this host alone."
      : way.planned ? `${way.hops.length} hops, as planned.` : `${way.hops.length} hops, not by the planned path.`;
    put(this.note, note);
    this.note.className = lost || !way.arrives ? "warn" : "";
    this.list.replaceChildren(
      head("", "hop", "port", "VLAN tag"),
      ...way.hops.map((hop, at) => row(
        `${at + 1}`, hop.channels.map((channel) => fabric.channels[channel]).join(" or ") + (down(hop.channels) ? " (down)" : ""),
        hop.channels.map(port).join(" or "), tag(hop))),
    );
    const names = (backup) => backup.channels.map((channels) => fabric.channels[channels[0]]).join(", ");
    this.backups.replaceChildren(
      ...(way.backups.length ? [html("h3", {}, way.backups.length > 1 ? "Backup paths" : "Backup path")] : []),
      ...way.backups.map((backup) => html("p", {}, (backup.vlan === null ? "" : `VLAN ${backup.vlan}: `) + names(backup)
        + ` (${backup.shared ? `${backup.shared} ${backup.shared > 1 ? "links" : "link"} in common` : "no link in common"})`)),
    );
    view.drawing.choose([], [this.source, this.destination], way.hops.map((hop) => hop.channels), way.backups[0]?.channels ?? []);
  }
}
