// Snapshots of what partitions know of their producers: to be taken, and to be compared
// with the log.

import { call, get, path, query, sendJSON } from "./api.js";
import { facts, h, replace } from "./dom.js";
import { ago, bytes, count, counted, dateTime } from "./format.js";
import { cell, loader, pager, table } from "./table.js";
import { failure } from "./failure.js";
import { partitionLink } from "./links.js";

const pageSize = 50;
const period = 10; // seconds between two looks

const reasons = { roll: "a segment was closed", shutdown: "clean stop", request: "asked for", startup: "recovery" };

export function snapshots() {
  const trouble = h("div");
  const outcome = h("p", { class: "take-outcome small", role: "status" });
  const topic = h("input", { id: "snapshot-topic", autocomplete: "off", spellcheck: "false", list: "snapshot-topics", size: 16, placeholder: "all" });
  const names = h("datalist", { id: "snapshot-topics" });
  const number = h("input", { id: "snapshot-partition", inputmode: "numeric", size: 6, placeholder: "all" });
  const checked = new Map(); // what a comparison has given, by snapshot
  const allocator = facts({ mark: "Block mark" });
  const list = table({
    caption: "Snapshots", id: "snapshots", empty: "There is no snapshot yet. One is taken when a segment is closed, at a clean stop, and on request.",
    columns: [
      { id: "partition", name: "Partition", head: true, cell: (s) => cell(`${s.topic}/${s.partition}`, () => partitionLink(s.topic, s.partition)) },
      { id: "offset", name: "Up to offset", num: true, cell: (s) => count(s.offset) },
      { id: "reason", name: "Reason", cell: (s) => reasons[s.reason] ?? s.reason },
      { id: "age", name: "Age", num: true, cell: (s) => cell(ago(s.createdAt), () => h("span", { title: dateTime(s.createdAt) }, ago(s.createdAt))) },
      { id: "producers", name: "Producers", num: true, cell: (s) => count(s.producers) },
      { id: "bytes", name: "Size", num: true, cell: (s) => bytes(s.bytes) },
      { id: "crc", name: "CRC", num: true, cell: (s) => cell(s.crc, () => h("code", null, s.crc)) },
      { id: "verify", name: "Verified", cell: (s) => cell(keyOf(s) + JSON.stringify(checked.get(keyOf(s)) ?? ""), () => verification(s)) },
    ],
  });
  const pages = pager(() => load.run(true));
  const load = loader(
    (signal) => get(`/snapshots${query({ limit: pageSize, pageToken: pages.token })}`, { signal }),
    (page) => {
      replace(trouble);
      shown = page.items;
      list.show(shown);
      pages.show(page.nextPageToken);
    },
    (error) => replace(trouble, failure(error)));
  let shown = [];

  function keyOf(s) {
    return `${s.topic}/${s.partition}/${s.offset}/${s.crc}`;
  }

  function verification(s) {
    const result = checked.get(keyOf(s));
    const name = `${s.topic}/${s.partition} at offset ${s.offset}`;
    const button = h("button", { type: "button", class: "small-button", "aria-label": `Verify the snapshot of ${name}`, onclick: () => verify(s, button) }, result === undefined ? "Verify" : "Again");
    if (result === undefined) {
      return button;
    }
    if (result.error !== undefined) {
      return h("span", null, h("span", { class: "tag lost" }, "failed"), " ", result.error, " ", button);
    }
    return h("span", null, result.match
      ? h("span", { class: "tag good" }, "the same")
      : [h("span", { class: "tag lost" }, "differs"), " ", result.differences.slice(0, 3).join(" ")], " ", button);
  }

  async function verify(s, button) {
    button.disabled = true;
    try {
      checked.set(keyOf(s), await call("POST", path`/snapshots/${s.topic}/${s.partition}/${s.offset}/verify`));
    } catch (error) {
      checked.set(keyOf(s), { error: error.message });
    }
    list.show(shown);
  }

  async function take(event) {
    event.preventDefault();
    const body = {};
    if (topic.value.trim() !== "") {
      body.topic = topic.value.trim();
    }
    if (number.value.trim() !== "") {
      body.partition = Number(number.value);
    }
    try {
      const taken = await sendJSON("POST", "/snapshots", body);
      replace(outcome, `${counted(taken.items.length, "snapshot")} taken.`);
      pages.reset();
      load.run(true);
    } catch (error) {
      replace(outcome, failure(error));
    }
  }

  get("/topics?limit=1000").then((topics) => replace(names, topics.items.map((t) => h("option", { value: t.name }))), () => {});
  load.run();
  return {
    title: "Snapshots",
    element: h("div", { class: "view" }, h("h1", { tabindex: "-1" }, "Snapshots"),
      h("p", { class: "lead muted" }, "What a partition knows of its producers, written down, so that a start need not read the whole log. Verifying one builds the same from the log and compares."),
      h("section", { class: "panel", "aria-label": "Take snapshots" },
        h("form", { class: "filters", onsubmit: take },
          h("div", null, h("label", { for: "snapshot-topic" }, "Topic"), topic, names),
          h("div", null, h("label", { for: "snapshot-partition" }, "Partition"), number),
          h("div", null, h("button", { class: "primary", id: "take" }, "Take a snapshot"))), outcome),
      h("section", { class: "panel", "aria-label": "Snapshots" }, trouble, list.element, pages.element),
      h("section", { class: "panel", "aria-labelledby": "allocator-title" }, h("h2", { id: "allocator-title" }, "Producer ids"), h("div", { class: "allocator" }, allocator.element,
        h("p", { class: "small muted" }, "All ids below it are issued or reserved. They are reserved in blocks of 1,000: a block's end is on disk before its first id is given out, so no id is ever given out twice. What a crash leaves of a block is not used.")))),
    sample(history) {
      allocator.set("mark", count(history.last.producerIdMark));
      load.tick(period);
    },
    close: load.close,
  };
}
