// What a server offers on which nothing is yet: the first append, to be copied.

import { get, hasToken } from "./api.js";
import { h } from "./dom.js";

/** A panel for a server without topics: {element, show(quiet)}. It goes with the first append. */
export function firstRun() {
  let empty = false; // there was no topic when the view was opened
  let quiet = false; // nothing has been appended
  const element = h("section", { class: "panel first-run", "aria-labelledby": "first-run", hidden: true },
    h("div", null, h("h2", { id: "first-run" }, "The first append"),
      h("p", { class: "muted" }, "Create a topic, take a producer id, append. Then run the last command again, as after a lost answer: it is stored once."),
      h("p", { class: "muted small" }, "If the answer to the second command has another pid than 0, put it into the third."),
      h("p", { class: "first-run-links" }, h("a", { class: "button primary", href: "#/try" }, "Try it here"), h("a", { class: "button", href: "/docs" }, "All of the API"))),
    h("pre", { class: "small", tabindex: "0", "aria-label": "Commands" }, commands()));
  const update = () => {
    element.hidden = !empty || !quiet;
  };
  get("/topics?limit=1").then((page) => {
    empty = page.items.length === 0;
    update();
  }, () => {});
  return {
    element,
    show(nothingYet) {
      quiet = nothingYet;
      update();
    },
  };
}

function commands() {
  const auth = hasToken() ? " -H \"Authorization: Bearer $ONCELOG_TOKEN\"" : "";
  const json = "-H 'Content-Type: application/json'";
  return `curl${auth} -X PUT ${location.origin}/topics/orders ${json} -d '{"partitions": 1}'

curl${auth} -X POST ${location.origin}/producers

curl${auth} ${location.origin}/topics/orders/partitions/0/batches \\
  ${json} \\
  -d '{"pid": 0, "epoch": 0, "baseSeq": 0, "records": [{"value": {"order": 17}}]}'`;
}
