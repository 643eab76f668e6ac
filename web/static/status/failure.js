// Shows what the server refused, and why.

import { h } from "./dom.js";
import { Problem } from "./api.js";

/** A note about an error, with a link to the page about its code. */
export function failure(error) {
  if (!(error instanceof Problem)) {
    throw error;
  }
  const known = error.code !== "" && error.code !== "no-answer";
  return h("p", { class: "note lost", role: "alert" }, error.message, " ",
    known && h("a", { href: `/problems/${error.code}` }, "What this means"));
}
