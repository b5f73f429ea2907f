// How figures are written, and how elements are made: from text alone, so that no name is ever taken for markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const html = (name, attributes = {}, ...children) => filled(document.createElement(name), attributes, children);
export const svg = (name, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, name), attributes, children);

export const percent = (thousandths) => `${thousandths < 100 ? Math.round(thousandths) / 10 : Math.round(thousandths / 10)} %`;

function scaled(value, step, units) {
  let unit = 0;
  while (value >= step && unit < units.length - 1) {
    value /= step;
    unit += 1;
  }
  return `${Number(value.toPrecision(value >= 100 ? 3 : 2))} ${units[unit]}`;
}

export const rate = (bits) => scaled(bits, 1000, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);
export const bytes = (size) => scaled(size, 1000, ["B", "kB", "MB", "GB", "TB"]);

export function seconds(time) {
  if (Math.abs(time) >= 1 || time === 0) return `${time.toFixed(2)} s`;
  if (Math.abs(time) >= 1e-3) return `${(time * 1e3).toFixed(2)} ms`;
  return `${(time * 1e6).toFixed(1)} µs`;
}

// A level of the scale of colours, 0 to 11; -1 for what is not used.
export const level = (thousandths) => (thousandths < 1 ? -1 : Math.min(11, Math.floor((thousandths * 12) / 1000)));

export async function ask(what, values) {
  const answer = await fetch(`${what}?${new URLSearchParams(values)}`);
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.problem);
  return said;
}

export async function press(values) {
  const answer = await fetch("do", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(values),
  });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.problem);
  return said;
}
