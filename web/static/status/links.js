// Links between the views.

import { h } from "./dom.js";
import { count } from "./format.js";

/** The address of a view: view("topics", "orders", 0). */
export function view(...parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

/** A link to a topic. */
export function topicLink(topic) {
  return h("a", { href: view("topics", topic) }, topic);
}

/** A link to a partition. */
export function partitionLink(topic, partition) {
  return h("a", { href: view("topics", topic, partition) }, `${topic}/${partition}`);
}

/** A link to a producer. */
export function producerLink(pid, text = `producer ${count(pid)}`) {
  return h("a", { href: view("producers", pid) }, text);
}
