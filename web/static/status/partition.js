// One partition: its ends, the sequence lines of its producers, its records.

import { get, path } from "./api.js";
import { facts, h, replace, setText } from "./dom.js";
import { bytes, count, dateTime, rate } from "./format.js";
import { failure } from "./failure.js";
import { loader, table } from "./table.js";
import { records } from "./records.js";
import { legend, strips } from "./strip.js";
import { topicLink, view } from "./links.js";

const shownSegments = 20;
const rateSpan = 5; // seconds over which the rate is taken
const period = 5; // seconds between two looks at the segments

export function partition({ topic, number }) {
  let next = null; // the next offset, as it was told last
  const seen = []; // and at the last seconds
  const trouble = h("div");
  const ends = facts({
    earliest: "First offset", next: "Next offset", kept: "Records kept", rate: "Records a second", bytes: "Size",
    segments: "Segments", producers: "Producers", parked: "Held right now",
  });
  const lines = strips("producer", "No producer has written here yet. Appends without a producer have no line.");
  const others = h("p", { class: "small muted" });
  const log = records(topic, number);
  const segments = table({
    caption: "Segments", empty: "There is no segment.", id: "segments",
    columns: [
      { id: "base", name: "From offset", head: true, cell: (s) => count(s.baseOffset) },
      { id: "next", name: "To below", num: true, cell: (s) => count(s.nextOffset) },
      { id: "batches", name: "Batches", num: true, cell: (s) => count(s.batches) },
      { id: "bytes", name: "Size", num: true, cell: (s) => bytes(s.bytes) },
      { id: "created", name: "Created", num: true, cell: (s) => dateTime(s.createdAt) },
    ],
  });
  const load = loader((signal) => get(path`/topics/${topic}/partitions/${number}`, { signal }), (p) => {
    replace(trouble);
    segments.show(p.segments.slice(-shownSegments).reverse());
    log.advance(p.earliestOffset, p.nextOffset);
  }, (error) => replace(trouble, failure(error)));
  load.run();

  return {
    title: `${topic}/${number}`,
    element: h("div", { class: "view" },
      h("p", { class: "crumbs small" }, h("a", { href: "#/topics" }, "Topics"), " / ", topicLink(topic), " /"),
      h("h1", { tabindex: "-1" }, `Partition ${topic}/${number}`), trouble,
      h("section", { class: "panel", "aria-label": "Ends" }, ends.element),
      h("section", { class: "panel", "aria-labelledby": "lines-title" },
        h("h2", { id: "lines-title" }, "Sequence lines"), legend(), lines.element, others),
      log.element,
      h("details", { class: "panel" }, h("summary", null, "Segments"),
        h("p", { class: "small muted" }, `The newest ${shownSegments} at most. `,
          h("a", { href: view("snapshots") }, "Snapshots"), " lie between them."), segments.element)),
    look(p) {
      if (p.topic !== topic || p.partition !== number) {
        return;
      }
      next = p.nextOffset;
      ends.set("earliest", count(p.earliestOffset));
      ends.set("next", count(p.nextOffset));
      ends.set("kept", count(p.nextOffset - p.earliestOffset));
      ends.set("bytes", bytes(p.bytes));
      ends.set("segments", count(p.segments));
      ends.set("producers", count(p.producers));
      ends.set("parked", count(p.parked));
      lines.show(p.lines);
      const more = p.producers - p.lines.length;
      setText(others, more > 0 ? `Those that wrote last, of ${count(p.producers)}. The list of producers has all.` : "");
      log.advance(p.earliestOffset, p.nextOffset);
    },
    sample() {
      // Looked at each second, for nothing is told while nothing changes.
      if (next !== null) {
        seen.push({ at: performance.now(), next });
        seen.splice(0, seen.length - rateSpan - 1);
        const first = seen[0];
        const took = (seen.at(-1).at - first.at) / 1000;
        ends.set("rate", rate(took > 0 ? (next - first.next) / took : 0));
      }
      load.tick(period);
    },
    close() {
      load.close();
      log.close();
      lines.close();
    },
  };
}
