// The overview: is anything lost or doubled, and what happens now.

import { facts, h, setAttribute, setText } from "./dom.js";
import { bytes, count, counted, duration, micros, rate } from "./format.js";
import { chart } from "./chart.js";
import { feed } from "./incidents.js";
import { hero } from "./verdict.js";
import { tape } from "./tape.js";

// The counts, each with the mark that it has on the tape.
const figures = [
  { mark: "stored", name: "records stored", total: (t) => t.records, note: (t) => `in ${counted(t.appends, "batch", "batches")}` },
  { mark: "duplicate", name: "came again", total: (t) => t.duplicates, note: (t) => (t.duplicates > 0 ? "and were stored once" : "no duplicate yet") },
  { mark: "held", name: "overtook others", total: (t) => t.held + t.passingGaps, note: (t) => `${count(t.held)} waited, ${count(t.passingGaps)} refused for now` },
  { mark: "missing", name: "gaps", total: (t) => t.lastingGaps, note: (t) => (t.lastingGaps > 0 ? "refusals with records missing" : "nothing is missing") },
  { mark: "fenced", name: "fenced", total: (t) => t.fenced, note: (t) => (t.expired > 0 ? `and ${count(t.expired)} expired` : "from epochs that are over") },
  { mark: "reused", name: "reused", total: (t) => t.reused, note: (t) => (t.overlaps > 0 ? `and ${count(t.overlaps)} overlapping` : "sequences used twice") },
];

const names = ["records", "duplicates", "overtook", "lastingGaps", "fenced", "reused"];

export function overview({ onToken }) {
  const verdict = hero(onToken);
  const strip = tape();
  const values = figures.map((f, i) => ({
    number: h("dd", { class: "figure-number", "data-total": names[i] }, "–"),
    note: h("dd", { class: "figure-note" }),
  }));
  const totals = h("dl", { class: "figures", "aria-label": "Since the server started" }, figures.map((f, i) =>
    h("div", { class: "figure" }, h("dt", { class: `mark-${f.mark}` }, f.name), values[i].number, values[i].note)));
  const latency = chart({
    title: "Commit latency", id: "chart-latency", log: true, format: micros, none: "no commit in this second",
    series: [
      { name: "mean", tone: "ink", value: (s) => (s.event.commits.count > 0 ? s.event.commits.meanMicros : null) },
      { name: "p99", tone: "accent", dash: true, value: (s) => (s.event.commits.count > 0 ? s.event.commits.p99Micros : null) },
    ],
  });
  const perCommit = chart({
    title: "Records per commit", id: "chart-percommit", format: rate, none: "no commit in this second",
    series: [{ name: "records", tone: "ink", value: (s) => s.perCommit }],
  });
  const now = facts({
    appends: "Batches a second", records: "Records a second", bytes: "Bytes a second", parked: "Held right now", streams: "Open streams",
  });
  const space = facts({ store: "Store", used: "In use", disk: "Free on the disk", mark: "Producer ids below", uptime: "Running for" });
  const happenings = feed({ limit: 12, board: true, empty: "Nothing but plain appends. What comes twice, early or too late is listed here as it happens." });

  const element = h("div", { class: "overview" },
    h("h1", { class: "visually-hidden", tabindex: "-1" }, "Overview"),
    verdict.element,
    h("section", { class: "panel", "aria-label": "The last five minutes" }, strip.element, totals),
    h("section", { class: "panel happenings", "aria-labelledby": "happenings" },
      h("h2", { id: "happenings" }, "What was not simply stored"), happenings.element),
    h("div", { class: "trio" }, latency.element, perCommit.element,
      h("section", { class: "panel duo", "aria-label": "Numbers" }, now.element, space.element)));

  return {
    title: "Overview", element, hero: true,
    verdict: verdict.show,
    sample(history) {
      const e = history.last;
      figures.forEach((f, i) => {
        setText(values[i].number, count(f.total(e.totals)));
        setAttribute(values[i].number, "data-zero", f.total(e.totals) === 0);
        setText(values[i].note, f.note(e.totals));
      });
      strip.draw(history);
      latency.draw(history);
      perCommit.draw(history);
      happenings.show(history.incidents);
      now.set("appends", rate(history.mean("appends")));
      now.set("records", rate(history.mean("records")));
      now.set("bytes", bytes(history.mean("bytes")));
      now.set("parked", count(e.parked));
      now.set("streams", count(e.streams));
      space.set("store", bytes(e.store.bytes));
      space.set("used", bytes(e.store.bytes - e.store.freeBytes));
      space.set("disk", e.store.diskFreeBytes === undefined ? "unknown" : bytes(e.store.diskFreeBytes));
      space.set("mark", count(e.producerIdMark));
      space.set("uptime", duration(Date.parse(e.at) - Date.parse(e.startedAt)));
    },
    close() {
      strip.close();
      latency.close();
      perCommit.close();
    },
  };
}
