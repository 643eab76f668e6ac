// One topic and its partitions.

import { get, path, query } from "./api.js";
import { facts, h, replace } from "./dom.js";
import { bytes, count, duration, rate } from "./format.js";
import { cell, loader, pager, table } from "./table.js";
import { failure } from "./failure.js";
import { view } from "./links.js";
import { Rates } from "./rates.js";

const pageSize = 50;
const period = 2; // seconds between two looks

export function topic({ name }) {
  const rates = new Rates();
  const trouble = h("div");
  const config = facts({
    partitions: "Partitions", retention: "Records are kept", segment: "Segment size", batch: "Largest batch",
    expiry: "A producer is remembered for", idempotence: "Appends without a producer",
  });
  const list = table({
    caption: `Partitions of ${name}`, id: "partitions", empty: "There is no partition to show.",
    columns: [
      { id: "partition", name: "Partition", head: true, cell: (p) => cell(p.partition, () => h("a", { href: view("topics", name, p.partition) }, String(p.partition))) },
      { id: "earliest", name: "First offset", num: true, cell: (p) => count(p.earliestOffset) },
      { id: "next", name: "Next offset", num: true, cell: (p) => count(p.nextOffset) },
      { id: "rate", name: "Records a second", num: true, cell: (p) => rate(rates.of(p.partition)) },
      { id: "bytes", name: "Size", num: true, cell: (p) => bytes(p.bytes) },
      { id: "segments", name: "Segments", num: true, cell: (p) => count(p.segments.length) },
      { id: "producers", name: "Producers", num: true, cell: (p) => count(p.producers) },
      { id: "parked", name: "Held", num: true, cell: (p) => count(p.parked) },
    ],
  });
  const pages = pager(() => load.run(true));
  const load = loader(
    async (signal) => {
      const [about, page] = await Promise.all([
        get(path`/topics/${name}`, { signal }),
        get(path`/topics/${name}/partitions` + query({ limit: pageSize, pageToken: pages.token }), { signal }),
      ]);
      return { about, page };
    },
    ({ about, page }) => {
      replace(trouble);
      showConfig(config, about);
      const now = performance.now();
      page.items.forEach((p) => rates.add(p.partition, p.nextOffset, now));
      list.show(page.items);
      pages.show(page.nextPageToken);
    },
    (error) => replace(trouble, failure(error)));
  load.run();
  return {
    title: name,
    element: h("div", { class: "view" },
      h("p", { class: "crumbs small" }, h("a", { href: "#/topics" }, "Topics"), " /"),
      h("h1", { tabindex: "-1" }, name), trouble,
      h("section", { class: "panel", "aria-label": "Configuration" }, config.element),
      h("section", { class: "panel", "aria-label": "Partitions" }, list.element, pages.element)),
    sample() {
      load.tick(period);
    },
    close: load.close,
  };
}

function showConfig(config, t) {
  const kept = [t.retentionMs >= 0 && `for ${duration(t.retentionMs)}`, t.retentionBytes >= 0 && `up to ${bytes(t.retentionBytes)} a partition`].filter(Boolean);
  config.set("partitions", count(t.partitions));
  config.set("retention", kept.length === 0 ? "for ever" : kept.join(", "));
  config.set("segment", bytes(t.segmentBytes));
  config.set("batch", bytes(t.maxBatchBytes));
  config.set("expiry", duration(t.producerExpiryMs));
  config.set("idempotence", t.requireIdempotence ? "refused" : "taken, at least once");
}
