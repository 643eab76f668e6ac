// The list of producers: sorted, filtered and paged by the server.

import { get, query } from "./api.js";
import { h, replace } from "./dom.js";
import { ago, count, dateTime, until } from "./format.js";
import { cell, loader, pager, table } from "./table.js";
import { failure } from "./failure.js";
import { partitionLink, producerLink } from "./links.js";

const pageSize = 50;
const period = 2; // seconds between two looks

export function producers() {
  let by = { id: "lastTimestamp", descending: true };
  const trouble = h("div");
  const pid = h("input", { id: "filter-pid", inputmode: "numeric", autocomplete: "off", size: 10 });
  const topic = h("input", { id: "filter-topic", autocomplete: "off", spellcheck: "false", list: "topic-names", size: 16 });
  const names = h("datalist", { id: "topic-names" });
  const state = h("select", { id: "filter-state" },
    h("option", { value: "" }, "all"), h("option", { value: "active" }, "active in the last minute"),
    h("option", { value: "idle" }, "idle for a minute"), h("option", { value: "refused" }, "with refused appends"));
  // Where rows are cards, there are no column heads to sort by.
  const order = h("select", { id: "sort-by", onchange: () => sort(order.value) });
  const counter = (id, name, tone) => ({ id, name, num: true, sort: true, tone, cell: (p) => count(p.counters[id]) });
  const columns = [
    { id: "pid", name: "Producer", head: true, sort: true, cell: (p) => cell(p.pid, () => producerLink(p.pid, count(p.pid))) },
    { id: "epoch", name: "Epoch", num: true, sort: true, cell: (p) => count(p.epoch) },
    { id: "where", name: "Wrote last to", cell: (p) => cell(`${p.newest.topic}/${p.newest.partition}`, () => partitionLink(p.newest.topic, p.newest.partition)) },
    { id: "lastSeq", name: "Last sequence", num: true, sort: true, cell: (p) => count(p.newest.lastSeq) },
    { id: "lastOffset", name: "Last offset", num: true, sort: true, cell: (p) => count(p.newest.lastOffset) },
    { id: "lastTimestamp", name: "Last seen", num: true, sort: true, cell: (p) => cell(ago(p.lastTimestamp), () => h("span", { title: dateTime(p.lastTimestamp) }, ago(p.lastTimestamp))) },
    { id: "expiresAt", name: "Expires", num: true, sort: true, cell: (p) => cell(until(p.expiresAt), () => h("span", { title: dateTime(p.expiresAt) }, until(p.expiresAt))) },
    counter("accepted", "Accepted"), counter("duplicate", "Duplicate", "good"), counter("outOfOrder", "Out of order", "wait"),
    counter("fenced", "Fenced", "lost"), counter("reused", "Reused", "lost"),
  ];
  const list = table({
    caption: "Producers", id: "producers", empty: "No producer has live state.",
    sorted: () => by, onSort: sort,
    columns,
  });
  order.append(...columns.filter((c) => c.sort).map((c) => h("option", { value: c.id, selected: c.id === by.id }, c.name)));
  const pages = pager(() => load.run(true));
  const load = loader((signal) => get(`/producers${query({
    limit: pageSize, pageToken: pages.token, sort: by.id, order: by.descending ? "desc" : "asc",
    pid: pid.value.trim().replaceAll(",", ""), topic: topic.value.trim(), state: state.value,
  })}`, { signal }), (page) => {
    replace(trouble);
    list.show(page.items, filtered() ? "No producer is like that." : undefined);
    pages.show(page.nextPageToken);
  }, (error) => {
    replace(trouble, failure(error));
    list.show([], "");
    pages.show(null);
  });

  function filtered() {
    return pid.value !== "" || topic.value !== "" || state.value !== "";
  }

  function again() {
    pages.reset();
    load.run(true);
  }

  function sort(id) {
    // Ids begin with the smallest; of the rest, what is large is of interest.
    by = { id, descending: by.id === id ? !by.descending : id !== "pid" };
    order.value = id;
    again();
  }

  get("/topics?limit=1000").then((topics) => replace(names, topics.items.map((t) => h("option", { value: t.name }))), () => {});
  let timer = 0;
  const typed = () => {
    clearTimeout(timer);
    timer = setTimeout(again, 200);
  };
  load.run();
  return {
    title: "Producers",
    element: h("div", { class: "view" }, h("h1", { tabindex: "-1" }, "Producers"),
      h("section", { class: "panel" },
        h("form", { class: "filters", role: "search", "aria-label": "Producers", oninput: typed, onsubmit(event) { event.preventDefault(); again(); } },
          h("div", null, h("label", { for: "filter-pid" }, "Producer id"), pid),
          h("div", null, h("label", { for: "filter-topic" }, "Topic"), topic, names),
          h("div", null, h("label", { for: "filter-state" }, "Which"), state),
          h("div", { class: "narrow-only" }, h("label", { for: "sort-by" }, "Sorted by"), order)),
        trouble, list.element, pages.element),
      h("p", { class: "small muted" }, "Counters begin when the server starts. Last sequence and last offset are those of the producer's newest batch in any partition.")),
    sample() {
      load.tick(period);
    },
    close() {
      clearTimeout(timer);
      load.close();
    },
  };
}
