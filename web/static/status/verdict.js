// Says whether all is well: the large sentence of the overview, the bar above the other
// views, and the announcement for screen readers.

import { h, replace, setText, svg } from "./dom.js";
import { clock } from "./format.js";
import { hasToken, useToken } from "./api.js";
import { partitionLink, producerLink } from "./links.js";

const shapes = {
  ok: () => svg("svg", { class: "sign ok", viewBox: "0 0 24 24", "aria-hidden": true },
    svg("circle", { cx: 12, cy: 12, r: 10 }), svg("path", { d: "M7 12.5l3.4 3.4L17 9" })),
  attention: () => svg("svg", { class: "sign attention", viewBox: "0 0 24 24", "aria-hidden": true },
    svg("path", { d: "M12 2.5L22.5 21h-21z" }), svg("path", { d: "M12 9.5v5.2M12 17.4v.6" })),
  trouble: () => svg("svg", { class: "sign trouble", viewBox: "0 0 24 24", "aria-hidden": true },
    svg("path", { d: "M8 2h8l6 6v8l-6 6H8l-6-6V8z" }), svg("path", { d: "M12 7v6.4M12 16.6v.6" })),
};

const shownFindings = 3; // besides the first one

const levelNames = { ok: "All is well", attention: "Attention", trouble: "Trouble" };

/** What there is to say: the server's diagnosis, or that it cannot be reached. */
export function verdictOf(event, state) {
  if (state === "live" && event !== null) {
    return event.diagnosis;
  }
  if (state === "unauthenticated" || state === "forbidden") {
    return {
      level: "attention", findings: [],
      sentence: state === "forbidden" ? "This token may not see the whole server."
        : hasToken() ? "The server does not take this token." : "This server wants a token.",
      advice: "The status page needs one with the scope consume for all topics, as oncelog token create makes it. It is kept until this tab is closed.",
      wantsToken: true,
    };
  }
  if (state === "broken") {
    return {
      level: "trouble", findings: [], sentence: "The server does not answer.",
      advice: event === null ? "This page keeps trying." : `This page keeps trying. What it shows is from ${clock(event.at)}.`,
    };
  }
  return { level: "ok", findings: [], sentence: "Connecting…", advice: "", quiet: true };
}

/** The verdict in large, with what else was found below it: {element, show(verdict)}. */
export function hero(onToken) {
  const sign = h("div", { class: "hero-sign" });
  const sentence = h("p", { class: "hero-sentence", id: "sentence" });
  const advice = h("p", { class: "hero-advice", id: "advice" });
  const first = h("div");
  const others = h("ul", { class: "findings" });
  const element = h("section", { class: "hero", "aria-label": "Diagnosis" }, sign, h("div", { class: "hero-text" }, sentence, advice, first), others);
  let shown = "";
  return {
    element,
    show(verdict) {
      setText(sentence, verdict.sentence);
      setText(advice, verdict.advice);
      const key = JSON.stringify([verdict.level, verdict.findings, verdict.wantsToken, verdict.quiet]);
      if (key === shown) {
        return;
      }
      shown = key;
      element.dataset.level = verdict.quiet ? "quiet" : verdict.level;
      replace(sign, verdict.quiet ? null : shapes[verdict.level]());
      replace(first, verdict.findings.length > 0 && links(verdict.findings[0]), verdict.wantsToken && tokenForm(onToken));
      const more = verdict.findings.slice(1, 1 + shownFindings);
      const left = verdict.findings.length - 1 - more.length;
      replace(others, more.map(finding), left > 0 && h("li", { class: "muted" }, `and ${left} more`));
    },
  };
}

/** The verdict in one line: {show(verdict)}. */
export function bar(element) {
  const link = h("a", { href: "#/" });
  const sign = h("span", { class: "bar-sign" });
  replace(element, sign, link);
  return {
    show(verdict, hidden) {
      element.hidden = hidden || verdict.quiet === true;
      if (element.dataset.level !== verdict.level) {
        element.dataset.level = verdict.level;
        replace(sign, shapes[verdict.level]());
      }
      setText(link, verdict.sentence);
    },
  };
}

/** Reads changes of the verdict out: {show(verdict)}. */
export function announcer() {
  const element = h("p", { class: "visually-hidden", role: "status", id: "announce" });
  document.body.append(element);
  return {
    show(verdict) {
      if (!verdict.quiet) {
        setText(element, `${levelNames[verdict.level]}: ${verdict.sentence}`);
      }
    },
  };
}

function finding(f) {
  return h("li", { class: "finding" }, h("span", { class: "finding-sign" }, shapes[f.level]()),
    h("div", null, h("strong", null, f.sentence), h("p", { class: "small muted" }, f.advice), links(f)));
}

function links(f) {
  return h("p", { class: "finding-links small" },
    f.topic !== undefined && partitionLink(f.topic, f.partition),
    f.pid !== undefined && producerLink(f.pid),
    problemOf(f.code) !== null && h("a", { href: `/problems/${problemOf(f.code)}` }, "What this means"));
}

function problemOf(code) {
  switch (code) {
    case "lasting-gap":
      return "out-of-order-sequence";
    case "disk-low":
      return "storage-full";
    case "commits-slow":
    case "producers-many":
      return null;
    default:
      return code;
  }
}

function tokenForm(onToken) {
  const input = h("input", { type: "password", id: "token", autocomplete: "off", spellcheck: "false", required: true });
  return h("form", {
    class: "token-form",
    onsubmit(event) {
      event.preventDefault();
      useToken(input.value.trim());
      onToken();
    },
  }, h("label", { for: "token" }, "Token"), input, h("button", { class: "primary" }, "Use it"));
}
