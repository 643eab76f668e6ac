// Tells what became of appends that were not simply stored.

import { h, replace } from "./dom.js";
import { clock, count, range } from "./format.js";
import { partitionLink, producerLink } from "./links.js";

/** The kind of an incident; it picks its mark and its tone. */
export function kindOf(incident) {
  if (incident.outcome !== "refused") {
    return incident.outcome;
  }
  switch (incident.code) {
    case "out-of-order-sequence":
      return incident.lasting ? "missing" : "early";
    case "producer-fenced":
      return "fenced";
    case "producer-expired":
      return "expired";
    case "sequence-reused":
      return "reused";
    default:
      return "overlap";
  }
}

// The names of the kinds, for people.
const kindNames = {
  duplicate: "duplicate", held: "put in order", early: "too early", missing: "gap", fenced: "fenced", expired: "expired",
  reused: "reused", overlap: "overlap",
};

const tones = {
  duplicate: "good", held: "wait", early: "wait", missing: "lost", fenced: "lost", expired: "lost", reused: "lost", overlap: "lost",
};

const meanings = {
  duplicate: "A batch that came again, after a lost answer for instance. It is stored once.",
  held: "A batch that overtook others. It waited for them.",
  early: "One that waited in vain. It is refused, and may be sent again.",
  missing: "What comes before it is missing, and nobody sends it. Refused.",
  fenced: "From an epoch that a newer one has replaced. Refused.",
  reused: "With sequences that another payload has already. Refused.",
};

/** A tag that names a kind. */
function kindTag(kind) {
  return h("span", { class: `tag mark-${kind} ${tones[kind]}` }, kindNames[kind]);
}

/** What may be listed: each kind and what it means. */
export function kinds() {
  return h("ul", { class: "kinds" }, Object.entries(meanings).map(([kind, meaning]) =>
    h("li", null, kindTag(kind), h("span", { class: "muted" }, meaning))));
}

/** A sentence about it, without its place. */
export function describe(incident) {
  const seqs = `${incident.baseSeq === incident.lastSeq ? "sequence" : "sequences"} ${range(incident.baseSeq, incident.lastSeq)}`;
  switch (kindOf(incident)) {
    case "duplicate":
      return incident.offset === undefined
        ? `${seqs} came again, long after; stored once`
        : `${seqs} came again; stored once, at offset ${count(incident.offset)}`;
    case "held":
      return `${seqs} came early, waited ${count(incident.waitedMs)} ms, stored at offset ${count(incident.offset)}`;
    case "early":
      return `${seqs} came before ${count(incident.expectedSeq)}; refused for now`;
    case "missing":
      return `${seqs} came, but ${range(incident.expectedSeq, incident.baseSeq - 1)} ${incident.baseSeq - incident.expectedSeq === 1 ? "is" : "are"} missing; refused`;
    case "fenced":
      return `${seqs} of epoch ${count(incident.epoch)}, which epoch ${count(incident.currentEpoch)} has replaced; refused`;
    case "expired":
      return `${seqs} of epoch ${count(incident.epoch)}, which had expired; refused`;
    case "reused":
      return `${seqs} with another payload than at offset ${count(incident.offset)}; refused`;
    default:
      return `${seqs} overlap stored ones, ${count(incident.expectedSeq)} is next; refused`;
  }
}

/**
 * A list of incidents: {element, show(incidents)}. Rows are kept, so that what does not
 * change stands still. With board, there is one row for each producer, partition and
 * kind, the latest of them, and what is lost comes first. empty is a text, or nodes.
 */
export function feed({ limit, board = false, who = true, empty }) {
  const list = h("ol", { class: "feed" });
  const none = h("div", { class: "muted feed-none" }, empty);
  const element = h("div", null, list, none);
  let rows = new Map();
  return {
    element,
    show(incidents) {
      const wanted = (board ? latestOfEach(incidents) : incidents.map((i) => [JSON.stringify(i), i])).slice(0, limit);
      none.hidden = wanted.length > 0;
      list.hidden = wanted.length === 0;
      const before = rows;
      rows = new Map();
      wanted.forEach(([key, incident], at) => {
        let row = before.get(key);
        if (row === undefined || rows.has(key)) {
          row = { element: h("li", { class: before.size > 0 ? "feed-row fresh" : "feed-row" }), shown: "" };
        }
        rows.set(key, row);
        const now = JSON.stringify(incident);
        if (row.shown !== now) {
          row.shown = now;
          fill(row.element, incident, who);
        }
        if (list.children[at] !== row.element) {
          list.insertBefore(row.element, list.children[at] ?? null);
        }
      });
      while (list.children.length > wanted.length) {
        list.lastElementChild.remove();
      }
    },
  };
}

const gravity = { lost: 0, wait: 1, good: 2 };

// The latest incident of each producer, partition and kind. The order does not depend on
// the time, so that a busy list stands still.
function latestOfEach(incidents) {
  const latest = new Map();
  for (const i of incidents) {
    const key = [gravity[tones[kindOf(i)]], kindOf(i), i.topic, String(i.partition).padStart(4, "0"), String(i.pid).padStart(16, "0")].join(" ");
    if (!latest.has(key)) {
      latest.set(key, i);
    }
  }
  return [...latest].sort(([a], [b]) => (a < b ? -1 : 1));
}

function fill(row, incident, who) {
  replace(row,
    h("time", { datetime: incident.at, class: "faint" }, clock(incident.at)),
    kindTag(kindOf(incident)),
    h("span", { class: "feed-text" },
      h("span", { class: "feed-place" }, who && [producerLink(incident.pid), " in "], partitionLink(incident.topic, incident.partition), ": "),
      describe(incident)));
}
