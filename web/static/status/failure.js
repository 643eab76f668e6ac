// Shows what the server refused, and why.

import { h } from "./dom.js";
import { Problem } from "./api.js";

/** A note about an error, with a link to the page about its code. */
export function failure(error) {
  if (!(error instanceof Problem)) {
    throw error;
  }
  const known = error.code !== "" && error.code !== "no-answer";
  return h("p", { class: "note lost", role: "alert" }, sentence(error.message), " ",
    known && h("a", { href: `/problems/${error.code}` }, "What this means"));
}

// Details of problems begin like those of other errors, in lower case.
function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) ? "" : ".");
}
