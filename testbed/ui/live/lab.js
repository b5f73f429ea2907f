// What is told beside the fabric while nothing is chosen: how to choose, and what can be done with the whole lab.

import { html } from "./words.js";

export class LabPart {
  constructor(view) {
    this.element = html("div", {},
      html("p", { class: "muted" },
        "Click a link for its use over time and its VLANs, a switch for its ports, a host for its flows, two hosts for the path between them."),
      ...(view.replay ? [] : this.buttons(view)));
  }

  buttons(view) {
    const button = (text, id, what) => html("button", { type: "button", id, onclick: () => view.press({ do: what }) }, text);
    this.words = html("input", {
      id: "words", name: "words", spellcheck: "false", maxlength: 1000, placeholder: "iperf3 protocol=udp seconds=10",
    });
    this.run = html("button", { id: "run" }, "Run");
    const form = html("form", {
      autocomplete: "off",
      onsubmit: (event) => {
        event.preventDefault();
        view.press({ do: "load", words: this.words.value });
      },
    }, html("label", { for: "words", class: "muted" }, "As for testbed load; empty: the scenario\u2019s loads"),
    html("div", { class: "line" }, this.words, this.run));
    this.others = [button("Switch spare links off", "regulate", "regulate"), button("All links on", "all-on", "all on")];
    this.end = button("End it", "end", "end");
    this.job = html("p", { id: "job", role: "status" });
    return [
      html("h2", {}, "Run a load"), form,
      html("h2", {}, "Save power"),
      html("p", { class: "muted" }, "Watches the traffic for 5 s, and switches off the links that it can do without."),
      html("div", { class: "buttons" }, ...this.others),
      this.job, html("div", { class: "buttons" }, this.end),
    ];
  }

  update(view) {
    if (!this.job) return;
    const text = Object.entries(view.jobs).map(([what, step]) => `${what}: ${step}`).join("; ");
    if (this.job.textContent !== text) this.job.textContent = text;
    this.run.disabled = "load" in view.jobs;
    for (const one of this.others) one.disabled = "regulation" in view.jobs;
    this.end.hidden = !text;
  }
}
