// The list of topics.

import { get, query } from "./api.js";
import { h, replace } from "./dom.js";
import { bytes, count, dateTime, rate } from "./format.js";
import { cell, loader, pager, table } from "./table.js";
import { failure } from "./failure.js";
import { topicLink } from "./links.js";
import { Rates } from "./rates.js";

const pageSize = 50;
const period = 2; // seconds between two looks

export function topics() {
  const rates = new Rates();
  const trouble = h("div");
  const list = table({
    caption: "Topics", id: "topics", empty: ["There is no topic yet. ", h("a", { href: "#/try" }, "Try it"), " creates one."],
    columns: [
      { id: "name", name: "Topic", head: true, cell: (t) => cell(t.name, () => topicLink(t.name)) },
      { id: "partitions", name: "Partitions", num: true, cell: (t) => count(t.partitions) },
      { id: "records", name: "Records", num: true, cell: (t) => count(t.totals?.records ?? 0) },
      { id: "rate", name: "Records a second", num: true, cell: (t) => rate(rates.of(t.id)) },
      { id: "bytes", name: "Size", num: true, cell: (t) => bytes(t.totals?.bytes ?? 0) },
      { id: "held", name: "Held", num: true, cell: (t) => count(t.totals?.parked ?? 0) },
      { id: "created", name: "Created", num: true, cell: (t) => dateTime(t.createdAt) },
    ],
  });
  const pages = pager(() => load.run(true));
  const load = loader(
    (signal) => get(`/topics${query({ limit: pageSize, totals: true, pageToken: pages.token })}`, { signal }),
    (page) => {
      replace(trouble);
      const now = performance.now();
      page.items.forEach((t) => rates.add(t.id, t.totals?.appended ?? 0, now));
      list.show(page.items);
      pages.show(page.nextPageToken);
    },
    (error) => replace(trouble, failure(error)));
  load.run();
  return {
    title: "Topics",
    element: h("div", { class: "view" }, h("h1", { tabindex: "-1" }, "Topics"), trouble, h("section", { class: "panel" }, list.element, pages.element)),
    sample() {
      load.tick(period);
    },
    close: load.close,
  };
}
