// The page: fetches the fabric, listens to what goes on, or plays what is over.

import { Drawing, legend } from "./fabric.js";
import { LabPart } from "./lab.js";
import { HostPart, LinkPart, PairPart, SwitchPart } from "./panel.js";
import { ask, html, press, seconds } from "./words.js";

const KEPT = 480; // readings that charts go back
const REFRESH = 1000; // ms between two questions about what is chosen
const at = (id) => document.getElementById(id);

const view = {
  fabric: null, drawing: null, reading: null, links: {}, capturing: [], killed: [], jobs: {}, dilation: 1, replay: false, load: 0,
  history: [], part: null, chosen: null, stored: new Map(),

  lossless: () => Boolean(view.reading?.paused),

  // Figures of some directions over time, for charts; null until they are there.
  series(directions) {
    if (!view.replay) {
      const times = view.history.map((one) => one.at);
      const of = (name) => directions.map((direction) => view.history.map((one) => one[name][direction]));
      const span = times.length ? times[times.length - 1] - times[0] : 0;
      return { times, use: of("use"), waiting: of("waiting"), from: `${Math.round(span)} s ago`, to: "now", moment: null };
    }
    const recording = view.fabric.replay[view.load];
    const found = directions.map((direction) => view.storedSeries(direction));
    if (found.includes(null)) return null;
    const rows = recording.time.map((_, row) => row).filter((row) => recording.repeat[row] === recording.repeat[player.row]);
    const times = rows.map((row) => recording.time[row]);
    const of = (name) => found.map((one) => rows.map((row) => one[name][row]));
    return {
      times, use: of("use"), waiting: of("waiting"), from: seconds(times[0]), to: seconds(times[times.length - 1]),
      moment: recording.time[player.row],
    };
  },

  storedSeries(direction) {
    const key = `${view.load} ${direction}`;
    if (!view.stored.has(key)) {
      view.stored.set(key, null);
      ask("series", { load: view.load, direction }).then((found) => {
        view.stored.set(key, found);
        view.part?.update(view);
      }, complain);
    }
    return view.stored.get(key);
  },

  pick(kind, number) {
    if (kind === "host" && view.chosen?.kind === "host" && view.chosen.number !== number) view.pair(view.chosen.number, number);
    else if (kind === "host") show({ kind, number }, new HostPart(view, number), [], [number]);
    else if (kind === "switch") show({ kind, number }, new SwitchPart(view, number), [], []);
    else show({ kind, number }, new LinkPart(view, number), [number], []);
  },

  pair(source, destination) {
    show({ kind: "pair", number: source }, new PairPart(view, source, destination), [], [source, destination]);
  },

  async press(values) {
    try {
      await press(values);
    } catch (error) {
      log({ command: "", said: error.message, wrong: true });
    }
  },
};

function show(chosen, part, links, hosts) {
  view.chosen = chosen;
  view.part = part;
  view.drawing.choose(links, hosts);
  at("panel").replaceChildren(part.element);
  part.update(view);
  refresh();
}

function nothing() {
  view.chosen = null;
  if (!(view.part instanceof LabPart)) view.part = new LabPart(view); // what was typed there stays
  view.drawing.choose([], []);
  at("panel").replaceChildren(view.part.element);
  view.part.update(view);
}

async function refresh() {
  const part = view.part;
  if (!part?.refresh || document.hidden) return;
  try {
    await part.refresh(view);
  } catch (error) {
    complain(error);
  }
}

let complained = "";
function complain(error) {
  if (error.message !== complained && !(error instanceof TypeError)) log({ command: "", said: error.message, wrong: true });
  complained = error.message;
}

function log({ command, said, wrong }) {
  const line = html("li", { class: wrong ? "wrong" : null }, `${new Date().toLocaleTimeString()} `,
    ...(command ? [html("code", {}, command), " "] : []), said);
  at("lines").prepend(line);
  while (at("lines").childElementCount > 100) at("lines").lastChild.remove();
}

function state(word, kind) {
  at("state").textContent = word;
  at("state").className = kind;
}

function banner(text) {
  at("banner").hidden = !text;
  if (at("banner").textContent !== text) at("banner").textContent = text;
}

let deadlock = { channels: [], until: 0 };
function draw() {
  if (view.reading.deadlock?.length) {
    deadlock = { channels: view.reading.deadlock, until: Date.now() + 10000 };
    const names = deadlock.channels.map((channel) => view.fabric.channels[channel]);
    banner(`Deadlock: ${names.join(", ")} wait for each other for ever.`);
  } else if (deadlock.until && Date.now() > deadlock.until) {
    deadlock = { channels: [], until: 0 };
    banner("");
  }
  view.drawing.update(view.reading, view.links, view.killed, deadlock.channels);
  view.part?.update(view);
}

function heard(message) {
  if (message.line) log(message.line);
  if (message.trouble) {
    state(message.gone ? "no lab" : "no answer", "off");
    banner(`${message.trouble}${view.reading ? "; this is the last picture" : ""}`);
  }
  if (!message.reading) return;
  const { links, capturing, killed, jobs, doing, dilation, controller } = message.reading;
  if (at("state").className === "off") banner("");
  view.reading = message.reading;
  if (JSON.stringify(links) !== JSON.stringify(view.links)) view.links = links;
  [view.capturing, view.killed, view.jobs] = [capturing, killed, jobs];
  view.dilation = dilation;
  view.history.push({ at: performance.now() / 1000, use: message.reading.use, waiting: message.reading.waiting });
  if (view.history.length > KEPT) view.history.shift();
  state(doing === "idle" ? "live" : `live, ${doing} under way`, "on");
  facts(`dilation ${Number(dilation.toPrecision(4))}`, controller ? `controller ${controller}` : "");
  draw();
}

function facts(...more) {
  const { kind, routing, assignment, engine, switches, hosts } = view.fabric;
  const words = [`${kind}, ${switches.length} switches, ${hosts.length} hosts`, `routing ${routing}`, `VLANs ${assignment}`, `engine ${engine}`, ...more];
  const text = words.filter(Boolean).join(" · ");
  if (at("facts").textContent !== text) at("facts").textContent = text;
}

function listen() {
  const events = new EventSource("events");
  events.onmessage = (event) => heard(JSON.parse(event.data));
  events.onerror = () => {
    state("not connected", "off");
    banner("The program that serves this page does not answer; this is the last picture.");
  };
}

// -------------------------------------------------------------------------------------------------- a run that is over

const player = {
  row: 0, timer: null, asking: false,

  begin() {
    view.replay = true;
    view.part = null;
    nothing();
    at("replay").hidden = false;
    at("load").replaceChildren(...view.fabric.replay.map((one, load) =>
      html("option", { value: load }, one.title + (one.verdict ? ` (${one.verdict})` : ""))));
    at("load").onchange = () => player.choose(Number(at("load").value));
    at("slider").oninput = () => player.go(Number(at("slider").value));
    at("play").onclick = () => player.play(player.timer === null);
    state("a finished run", "on");
    player.choose(0);
  },

  choose(load) {
    view.load = load;
    at("slider").max = view.fabric.replay[load].time.length - 1;
    at("slider").value = 0;
    player.go(0);
    refresh();
  },

  play(on) {
    clearInterval(player.timer);
    player.timer = on ? setInterval(() => {
      if (player.row >= Number(at("slider").max)) player.play(false);
      else if (!player.asking) player.go(player.row + 1);
    }, 125) : null;
    at("play").textContent = on ? "Pause" : "Play";
  },

  async go(row) {
    player.row = row;
    at("slider").value = row;
    const { time, repeat, events } = view.fabric.replay[view.load];
    const repeats = repeat[repeat.length - 1] + 1;
    at("moment").textContent = seconds(time[row]) + (repeats > 1 ? `, repeat ${repeat[row] + 1} of ${repeats}` : "");
    at("slider").setAttribute("aria-valuetext", at("moment").textContent);
    banner(repeat[row] === 0 ? events.filter((one) => one.at <= time[row]).map((one) => one.event).join("; ") : "");
    player.asking = true;
    try {
      const found = await ask("reading", { load: view.load, reading: row });
      if (row !== player.row) return; // the slider has gone on
      view.reading = found;
      draw();
    } catch (error) {
      complain(error);
    } finally {
      player.asking = false;
    }
  },
};

// --------------------------------------------------------------------------------------------------------------- begin

function find(text) {
  const { hosts, links, switches } = view.fabric;
  const number = (list, name) => list.findIndex((one) => one.name === name);
  const words = text.trim().split(/[\s,→>]+/).filter(Boolean);
  const found = words.map((word) => number(hosts, word));
  if (words.length === 2 && found[0] >= 0 && found[1] >= 0 && found[0] !== found[1]) return view.pair(...found);
  const [name] = words;
  const reversed = links.findIndex(({ ends }) => ends.map((end) => switches[end].name).reverse().join("-") === name);
  view.chosen = null;
  if (found[0] >= 0) return view.pick("host", found[0]);
  const link = number(links, name) >= 0 ? number(links, name) : reversed;
  if (link >= 0) return view.pick("link", link);
  if (number(switches, name) >= 0) return view.pick("switch", number(switches, name));
  return log({ command: "", said: `There is no link, host or switch "${text}".`, wrong: true });
}

function keys(event) {
  const step = { ArrowRight: ["link", 1], ArrowLeft: ["link", -1], ArrowDown: ["host", 1], ArrowUp: ["host", -1] }[event.key];
  if (event.key === "Escape") nothing();
  if (!step) return;
  event.preventDefault();
  const [kind, by] = step, count = kind === "link" ? view.fabric.links.length : view.fabric.hosts.length;
  if (!count) return;
  const from = view.chosen?.kind === kind ? view.chosen.number : by > 0 ? -1 : 0;
  view.chosen = null;
  view.pick(kind, (from + by + count) % count);
}

async function begin() {
  view.fabric = await (await fetch("fabric")).json();
  const { fabric } = view;
  at("title").textContent = fabric.lab;
  document.title = `${fabric.lab} – testbed live`;
  facts();
  view.drawing = new Drawing(at("fabric"), fabric, view.pick);
  at("legend").replaceChildren(...legend());
  at("names").replaceChildren(...[...fabric.links, ...fabric.hosts, ...fabric.switches].map(({ name }) => html("option", { value: name })));
  at("find").onsubmit = (event) => {
    event.preventDefault();
    find(at("wanted").value);
  };
  at("fabric").onkeydown = keys;
  document.onkeydown = (event) => {
    if (event.key === "Escape") nothing();
  };
  nothing();
  if (fabric.replay) player.begin();
  else listen();
  setInterval(() => {
    if (!view.replay) refresh();
  }, REFRESH);
}

begin();
