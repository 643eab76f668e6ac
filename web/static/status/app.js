// The status page: it follows the server, and shows the view that the address names.

import { bar, announcer, verdictOf } from "./verdict.js";
import { get } from "./api.js";
import { h, replace, setAttribute, setText } from "./dom.js";
import { clock } from "./format.js";
import { History } from "./history.js";
import { Stream } from "./stream.js";
import { gateway, overview } from "./overview.js";
import { topics } from "./topics.js";
import { topic } from "./topic.js";
import { partition } from "./partition.js";
import { producers } from "./producers.js";
import { producer } from "./producer.js";
import { snapshots } from "./snapshots.js";
import { tryIt } from "./tryit.js";

const history = new History();
const main = document.getElementById("main");
const live = document.getElementById("live");
const liveText = document.getElementById("live-text");
const verdictBar = bar(document.getElementById("verdict"));
const announce = announcer();
let state = "";
let current = null; // the view that is shown
let scheduled = false;

const stream = new Stream((kind, value) => {
  switch (kind) {
    case "state":
      enter(value);
      break;
    case "sample":
      history.add(value);
      break;
    default:
      current?.look?.(value);
      return;
  }
  schedule();
});

// Without a token that the server takes, there is nothing to be shown but the question for it.
function enter(value) {
  const gate = (s) => s === "unauthenticated";
  const changed = gate(state) !== gate(value);
  state = value;
  if (changed) {
    navigate(true);
  }
}

// Events that come together, as at the start, are drawn once.
function schedule() {
  if (!scheduled) {
    scheduled = true;
    requestAnimationFrame(() => {
      scheduled = false;
      show();
    });
  }
}

function show() {
  const event = history.last;
  const verdict = verdictOf(event, state);
  verdictBar.show(verdict, current?.hero === true);
  announce.show(verdict);
  current?.verdict?.(verdict);
  setAttribute(live, "data-state", state);
  setText(liveText, { live: `live ${event === null ? "" : clock(event.at)}`, broken: "no answer", unauthenticated: "token wanted", forbidden: "not allowed" }[state] ?? "connecting");
  if (event !== null) {
    current?.sample?.(history);
  }
}

// The view of an address, and what the event stream is to look at for it.
function viewOf(parts) {
  const [name, a, b] = parts;
  switch (name ?? "") {
    case "":
      return { nav: "overview", make: () => overview({ onToken }) };
    case "topics":
      if (parts.length > 2) {
        return { nav: "topics", look: { topic: a, partition: b }, make: () => partition({ topic: a, number: Number(b) }) };
      }
      return { nav: "topics", make: () => (parts.length === 2 ? topic({ name: a }) : topics()) };
    case "producers":
      return parts.length > 1
        ? { nav: "producers", look: { pid: a }, make: () => producer({ pid: Number(a) }) }
        : { nav: "producers", make: producers };
    case "snapshots":
      return { nav: "snapshots", make: snapshots };
    case "try":
      return { nav: "try", make: () => tryIt({ follow: (pid) => stream.open({ pid }) }) };
    default:
      return { nav: "", make: nowhere };
  }
}

function nowhere() {
  return {
    title: "Not here",
    element: h("div", null, h("h1", { tabindex: "-1" }, "There is nothing here"), h("p", null, h("a", { href: "#/" }, "To the overview"))),
  };
}

function navigate(first) {
  const parts = location.hash.replace(/^#\/?/, "").split("/").filter((p) => p !== "").map(decode);
  const view = viewOf(parts);
  current?.close?.();
  current = state === "unauthenticated" ? gateway({ onToken }) : view.make();
  document.title = current.title === "Overview" ? "oncelog" : `${current.title} – oncelog`;
  for (const link of document.querySelectorAll(".page-nav a[data-view]")) {
    setAttribute(link, "aria-current", link.dataset.view === view.nav ? "page" : null);
  }
  replace(main, current.element);
  stream.open(view.look ?? {});
  show();
  if (!first) {
    window.scrollTo(0, 0);
    main.querySelector("h1")?.focus({ preventScroll: true });
  }
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function onToken() {
  stream.reopen();
  navigate(true);
}

window.addEventListener("hashchange", (event) => {
  // The link that skips to the content is no address of a view.
  if (location.hash === "#main") {
    window.history.replaceState(null, "", new URL(event.oldURL).hash || "#/");
    main.focus();
    return;
  }
  navigate(false);
});
navigate(true);

get("/version").then((v) => setText(document.getElementById("version"), `oncelog ${v.version}`), () => {});
