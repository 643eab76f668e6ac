// One producer: its line in each partition, and what of it was refused.

import { get, path } from "./api.js";
import { facts, h, replace, setText } from "./dom.js";
import { ago, count, until } from "./format.js";
import { failure } from "./failure.js";
import { feed } from "./incidents.js";
import { legend, strips } from "./strip.js";

export function producer({ pid }) {
  const trouble = h("div");
  const about = facts({ epoch: "Highest epoch", partitions: "Partitions", seen: "Last seen", expires: "Expires" });
  const sums = facts({ accepted: "Accepted", duplicate: "Duplicate", held: "Waited", outOfOrder: "Out of order", fenced: "Fenced", reused: "Reused" });
  const lines = strips("partition", "No partition has live state of this producer.");
  const others = h("p", { class: "small muted" });
  const rejected = feed({ limit: 16, who: false, empty: "Nothing of this producer has been refused since the server started." });
  get(path`/producers/${pid}`).then(() => {}, (error) => replace(trouble, failure(error)));
  let last = null;

  function times() {
    const seen = last.lines.map((l) => l.lastTimestamp).sort().at(-1);
    const gone = last.lines.map((l) => l.expiresAt).sort().at(-1);
    about.set("seen", seen === undefined ? "–" : ago(seen));
    about.set("expires", gone === undefined ? "–" : until(gone));
  }

  return {
    title: `Producer ${pid}`,
    element: h("div", { class: "view" },
      h("p", { class: "crumbs small" }, h("a", { href: "#/producers" }, "Producers"), " /"),
      h("h1", { tabindex: "-1" }, `Producer ${Number.isSafeInteger(pid) ? count(pid) : ""}`), trouble,
      h("section", { class: "panel summary", "aria-label": "Summary" }, about.element, sums.element),
      h("section", { class: "panel", "aria-labelledby": "lines-title" },
        h("h2", { id: "lines-title" }, "Its lines"), legend(), lines.element, others),
      h("section", { class: "panel", "aria-labelledby": "rejected-title" },
        h("h2", { id: "rejected-title" }, "Refused lately"), rejected.element)),
    look(p) {
      if (p.pid !== pid) {
        return;
      }
      last = p;
      replace(trouble);
      const sum = (name) => p.lines.reduce((n, l) => n + l.counters[name], 0);
      for (const name of ["accepted", "duplicate", "held", "outOfOrder", "fenced", "reused"]) {
        sums.set(name, count(sum(name)));
      }
      about.set("epoch", p.lines.length === 0 ? "–" : count(Math.max(...p.lines.map((l) => l.epoch))));
      about.set("partitions", count(p.partitions));
      times();
      lines.show(p.lines);
      setText(others, p.partitions > p.lines.length ? `The first ${count(p.lines.length)} of ${count(p.partitions)} partitions; the sums are of these.` : "");
      rejected.show(p.rejected);
    },
    sample() {
      if (last !== null) {
        times();
      }
    },
    close: lines.close,
  };
}
