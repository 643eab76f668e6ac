// The overview: is anything lost or doubled, and what happens now.

import { facts, h, setAttribute, setText } from "./dom.js";
import { bytes, count, counted, duration, micros, rate } from "./format.js";
import { chart } from "./chart.js";
import { feed, kinds } from "./incidents.js";
import { hero } from "./verdict.js";
import { firstRun } from "./firstrun.js";
import { tape } from "./tape.js";

// The counts, each with the mark that it has on the tape.
const figures = [
  { mark: "stored", name: "records stored", total: (t) => t.records, note: (t) => `in ${counted(t.appends, "batch", "batches")}` },
  { mark: "duplicate", name: "came again", total: (t) => t.duplicates, note: (t) => (t.duplicates > 0 ? "and were stored once" : "no duplicate yet") },
  { mark: "held", name: "overtook others", total: (t) => t.held + t.passingGaps, note: (t) => `${count(t.held)} waited, ${count(t.passingGaps)} refused` },
  { mark: "missing", name: "gaps", total: (t) => t.lastingGaps, note: (t) => (t.lastingGaps > 0 ? "refusals with records missing" : "nothing is missing") },
  { mark: "fenced", name: "fenced", total: (t) => t.fenced, note: (t) => (t.expired > 0 ? `and ${count(t.expired)} expired` : "from epochs that are over") },
  { mark: "reused", name: "reused", total: (t) => t.reused, note: (t) => (t.overlaps > 0 ? `and ${count(t.overlaps)} overlapping` : "sequences used twice") },
];

const names = ["records", "duplicates", "overtook", "lastingGaps", "fenced", "reused"];

function sum(samples, value) {
  return samples.reduce((n, s) => n + value(s), 0);
}

// A mean, or null of nothing.
function over(total, n) {
  return n > 0 ? total / n : null;
}

/** What is shown until there is a token. */
export function gateway({ onToken }) {
  const verdict = hero(onToken);
  return {
    title: "Overview", hero: true, verdict: verdict.show,
    element: h("div", { class: "overview" }, h("h1", { class: "visually-hidden", tabindex: "-1" }, "Token"), verdict.element),
  };
}

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
      { name: "mean", tone: "ink", value: (some) => over(sum(some, (s) => s.event.commits.meanMicros * s.event.commits.count), sum(some, (s) => s.event.commits.count)) },
      { name: "p99", tone: "accent", dash: true, value: (some) => Math.max(...some.map((s) => s.event.commits.p99Micros)) || null },
    ],
  });
  const perCommit = chart({
    title: "Records per commit", id: "chart-percommit", format: rate, none: "no commit in this second",
    series: [{ name: "records", tone: "ink", value: (some) => over(sum(some, (s) => s.stored), sum(some, (s) => s.commits)) }],
  });
  const now = facts({ records: "records a second", appends: "batches a second", bytes: "a second" }, { class: "facts rates", "aria-label": "Now" });
  const state = facts({
    parked: "Held right now", streams: "Open streams", store: "Store", used: "In use", disk: "Free on the disk",
    mark: "Producer ids below", uptime: "Running for",
  });
  const happenings = feed({ limit: 12, board: true, empty: [h("p", null, "Nothing but plain appends in the last minutes. These would be listed here, as they happen:"), kinds()] });
  const stretch = h("h2", { id: "tape-title" }, "The last minutes");
  const first = firstRun();

  const element = h("div", { class: "overview" },
    h("h1", { class: "visually-hidden", tabindex: "-1" }, "Overview"),
    verdict.element, first.element,
    h("section", { class: "panel", "aria-labelledby": "tape-title" },
      h("div", { class: "tape-head" }, stretch, now.element), strip.element, totals),
    h("div", { class: "below" },
      h("section", { class: "panel happenings", "aria-labelledby": "happenings" },
        h("h2", { id: "happenings" }, "Out of the ordinary"), happenings.element),
      latency.element, perCommit.element),
    h("section", { class: "panel", "aria-label": "The server" }, state.element));

  return {
    title: "Overview", element, hero: true,
    verdict(v) {
      verdict.show(v);
      setAttribute(element, "data-gate", v.wantsToken === true);
    },
    sample(history) {
      const e = history.last;
      figures.forEach((f, i) => {
        setText(values[i].number, count(f.total(e.totals)));
        setAttribute(values[i].number, "data-zero", f.total(e.totals) === 0);
        setText(values[i].note, f.note(e.totals));
      });
      strip.draw(history);
      setText(stretch, `The last ${strip.minutes() === 1 ? "minute" : `${strip.minutes()} minutes`}`);
      first.show(e.totals.appends + e.totals.duplicates === 0);
      latency.draw(history);
      perCommit.draw(history);
      happenings.show(history.incidents);
      now.set("appends", rate(history.mean("appends")));
      now.set("records", rate(history.mean("records")));
      now.set("bytes", bytes(history.mean("bytes")));
      state.set("parked", count(e.parked));
      state.set("streams", count(e.streams));
      state.set("store", bytes(e.store.bytes));
      state.set("used", bytes(e.store.bytes - e.store.freeBytes));
      state.set("disk", e.store.diskFreeBytes === undefined ? "unknown" : bytes(e.store.diskFreeBytes));
      state.set("mark", count(e.producerIdMark));
      state.set("uptime", duration(Date.parse(e.at) - Date.parse(e.startedAt)));
    },
    close() {
      strip.close();
      latency.close();
      perCommit.close();
    },
  };
}
