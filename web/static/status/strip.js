// A producer's sequence line in a partition: what is stored, the batches that are
// remembered, what is missing, and what waits or was refused ahead of it.

import { h, replace, setText, svg } from "./dom.js";
import { count, counted, range } from "./format.js";
import { kindOf } from "./incidents.js";
import { onResize } from "./paint.js";
import { partitionLink, producerLink } from "./links.js";

const height = 74;
const top = 24; // of the blocks
const tall = 26;
const roomy = 560; // a picture as wide as this has room for what is older than the window
const readable = 46; // a batch narrower than this has no place for its sequences
const caret = 12;
const smallest = 26;
const largest = 132;

/** Lines of producers: {element, show(lines), close()}. by is "producer" or "partition". */
export function strips(by, empty) {
  const list = h("ul", { class: "strips" });
  const none = h("p", { class: "muted" }, empty);
  const element = h("div", null, list, none);
  const shown = new Map(); // what is on the page, by producer or partition
  return {
    element,
    show(lines) {
      none.hidden = lines.length > 0;
      const wanted = new Set(lines.map(keyOf));
      for (const [key, strip] of shown) {
        if (!wanted.has(key)) {
          strip.close();
          strip.element.remove();
          shown.delete(key);
        }
      }
      lines.forEach((line, i) => {
        const key = keyOf(line);
        let strip = shown.get(key);
        if (strip === undefined) {
          strip = stripOf(by);
          shown.set(key, strip);
        }
        if (list.children[i] !== strip.element) {
          list.insertBefore(strip.element, list.children[i] ?? null);
        }
        strip.show(line);
      });
    },
    close() {
      for (const strip of shown.values()) {
        strip.close();
      }
    },
  };
}

function keyOf(line) {
  return `${line.topic}/${line.partition}/${line.pid}`;
}

function stripOf(by) {
  const name = h("p", { class: "strip-name" });
  const note = h("p", { class: "strip-note small muted" });
  const fence = h("p", { class: "strip-fence" });
  const picture = h("div", { class: "strip-picture", style: { height: `${height}px` } });
  const element = h("li", { class: "strip" }, h("div", { class: "strip-head" }, name, note, fence), picture);
  let line = null;
  let key = "";

  function draw() {
    if (line === null || picture.clientWidth === 0) {
      return;
    }
    picture.replaceChildren(drawing(line, picture.clientWidth));
  }
  const close = onResize(picture, draw);
  return {
    element, close,
    show(next) {
      const now = JSON.stringify(next);
      if (now === key) {
        return;
      }
      if (line === null) {
        name.append(by === "producer" ? producerLink(next.pid) : partitionLink(next.topic, next.partition));
      }
      key = now;
      line = next;
      setText(note, noteOf(line));
      const { fenced } = shapeOf(line);
      replace(fence, fenced !== undefined && h("span", { class: "tag lost mark-fenced" }, `epoch ${count(fenced.epoch)} fenced off`));
      draw();
    },
  };
}

function noteOf(line) {
  const c = line.counters;
  const parts = [`epoch ${count(line.epoch)}`, `${count(c.accepted)} stored`];
  for (const [n, name] of [[c.duplicate, "came again"], [c.held, "waited"], [c.outOfOrder, "out of order"], [c.fenced, "fenced"], [c.reused, "reused"]]) {
    if (n > 0) {
      parts.push(`${count(n)} ${name}`);
    }
  }
  return parts.join(" · ");
}

/** What is to be drawn of a line, and said of it. */
export function shapeOf(line) {
  const next = line.lastSeq + 1;
  const again = new Map(); // how often a remembered batch came again, by its base sequence
  for (const i of line.incidents) {
    if (kindOf(i) === "duplicate" && i.epoch === line.epoch) {
      again.set(i.baseSeq, (again.get(i.baseSeq) ?? 0) + 1);
    }
  }
  const held = (line.held ?? []).filter((b) => b.epoch === line.epoch);
  // The newest refusal is shown as long as it still is ahead of what is stored.
  const early = held.length > 0 ? undefined : line.incidents.find((i) =>
    i.code === "out-of-order-sequence" && i.epoch === line.epoch && i.baseSeq > next);
  const ahead = held.length > 0 ? held.map((b) => ({ ...b, kind: "held" }))
    : early === undefined ? [] : [{ baseSeq: early.baseSeq, lastSeq: early.lastSeq, kind: early.lasting ? "missing" : "early" }];
  const fenced = line.incidents.find((i) => i.code === "producer-fenced" && i.currentEpoch === line.epoch);
  const reused = new Set(line.incidents.filter((i) => i.code === "sequence-reused" && i.epoch === line.epoch).map((i) => i.baseSeq));
  return { next, again, ahead, fenced, reused };
}

/** The line in words, for those who cannot see the drawing. */
export function wordsOf(line) {
  const { next, again, ahead, fenced, reused } = shapeOf(line);
  const parts = [`Producer ${line.pid} in ${line.topic}/${line.partition}, epoch ${line.epoch}: stored up to sequence ${next - 1}.`];
  if (line.recent.length > 0) {
    parts.push(`Remembered: ${line.recent.map((b) => range(b.baseSeq, b.lastSeq) + (again.has(b.baseSeq) ? `, which came again ${counted(again.get(b.baseSeq), "time")}` : "")).join("; ")}.`);
  }
  if (ahead.length > 0) {
    if (ahead[0].baseSeq > next) {
      parts.push(`Missing: ${range(next, ahead[0].baseSeq - 1)}.`);
    }
    parts.push(`${ahead[0].kind === "held" ? "Held" : "Refused"}: ${ahead.map((b) => range(b.baseSeq, b.lastSeq)).join("; ")}.`);
  }
  if (fenced !== undefined) {
    parts.push(`Epoch ${fenced.epoch} is fenced off.`);
  }
  if (reused.size > 0) {
    parts.push(`Refused with another payload: sequence ${[...reused].join(", ")}.`);
  }
  return parts.join(" ");
}

// Where the blocks begin.
function pastOf(width) {
  return width < roomy ? 16 : 92;
}

// The blocks of a line, with their widths. They are as wide as they have records, within
// bounds, and shrink together until the line fits; where they would become too narrow to
// be read, the oldest are left out.
function blocksOf(line, shape, width) {
  // Behind the last batch stands the next sequence; over one that is ahead there is room for it.
  const behind = caret + (shape.ahead.length > 0 ? 0 : wideAs(nextText(shape.next)));
  const most = Math.max(1, Math.floor((width - pastOf(width) - behind) / readable) - 2 * Math.min(shape.ahead.length, 1));
  const blocks = line.recent.slice(-most).map((b) => ({ kind: "stored", from: b.baseSeq, to: b.lastSeq, offset: b.baseOffset }));
  let from = shape.next;
  for (const b of shape.ahead) {
    if (b.baseSeq > from) {
      blocks.push({ kind: "gap", from, to: b.baseSeq - 1 });
    }
    blocks.push({ kind: b.kind, from: b.baseSeq, to: b.lastSeq });
    from = b.lastSeq + 1;
  }
  const room = width - pastOf(width) - behind - 4 * blocks.length - 8;
  const natural = blocks.map((b) => Math.min(Math.max(22 + 9 * Math.log2(1 + b.to - b.from + 1) + 6 * `${b.to}`.length, smallest), largest));
  const total = natural.reduce((a, b) => a + b, 0);
  const scale = Math.min(1.7, room / total);
  blocks.forEach((b, i) => {
    b.width = Math.max(natural[i] * scale, 10);
  });
  return blocks;
}

function drawing(line, width) {
  const shape = shapeOf(line);
  const words = wordsOf(line);
  const out = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": words });
  const middle = top + tall / 2;
  const past = pastOf(width);
  const blocks = blocksOf(line, shape, width);
  const before = blocks[0]?.kind === "stored" ? blocks[0].from : line.firstSeq;
  if (before > 0) {
    out.append(svg("line", { class: "s-past", x1: Math.min(8, past - 12), x2: past - 6, y1: middle, y2: middle }));
    if (width >= roomy) {
      out.append(svg("text", { class: "s-faint", x: past - 6, y: middle - 7, "text-anchor": "end" }, `${count(before)} before`));
    }
  } else {
    out.append(svg("line", { class: "s-start", x1: past - 6, x2: past - 6, y1: top, y2: top + tall }));
  }
  let x = past;
  let placed = false;
  for (const b of blocks) {
    if (!placed && b.kind !== "stored") {
      out.append(...caretAt(x, shape.next, width));
      x += caret;
      placed = true;
    }
    out.append(blockAt(b, x, shape));
    x += b.width + 4;
  }
  if (!placed) {
    out.append(...caretAt(x, shape.next, width));
  }
  if (shape.fenced !== undefined) {
    out.append(svg("line", { class: "s-fenced", x1: 1.5, x2: 1.5, y1: top - 4, y2: top + tall + 4 }));
  }
  return out;
}

function nextText(next) {
  return `next ${count(next)}`;
}

// The place of the next sequence.
function caretAt(x, next, width) {
  const text = nextText(next);
  const left = Math.min(x + 8, width - wideAs(text));
  return [
    svg("line", { class: "s-next", x1: x + 3, x2: x + 3, y1: top - 6, y2: top + tall + 6 }),
    svg("text", { class: "s-next-text", x: left, y: top - 8 }, text),
  ];
}

const names = { gap: "missing", held: "held", early: "refused", missing: "refused" };

function blockAt(b, x, shape) {
  const center = x + b.width / 2;
  const label = fitting(range(b.from, b.to), count(b.from), b.width);
  const group = svg("g", { class: `s-block s-${b.kind}` },
    svg("rect", { x, y: top, width: b.width, height: tall, rx: 3 }),
    b.kind === "held" && svg("path", { class: "s-hatch", d: hatch(x, b.width) }),
    label !== "" && svg("text", { class: "s-seq", x: center, y: top + tall / 2 + 4, "text-anchor": "middle" }, label));
  const below = b.kind === "stored" ? `@${count(b.offset)}` : names[b.kind];
  const under = fitting(below, "", b.width + 4);
  if (under !== "") {
    group.append(svg("text", { class: "s-under", x: center, y: top + tall + 16, "text-anchor": "middle" }, under));
  }
  const times = b.kind === "stored" ? shape.again.get(b.from) : undefined;
  if (times !== undefined) {
    // It left for the sender and came again: an arc that ends where it began.
    const r = Math.min(b.width / 3, 12);
    group.append(
      svg("path", { class: "s-again", d: `M${center - r} ${top - 2} C${center - r} ${top - 16} ${center + r} ${top - 16} ${center + r} ${top - 3}` }),
      svg("path", { class: "s-again-tip", d: `M${center + r - 4} ${top - 8} L${center + r} ${top - 2} L${center + r + 4} ${top - 8} z` }),
      svg("text", { class: "s-again-text", x: center, y: top - 15, "text-anchor": "middle" }, `×${times + 1}`));
  }
  if (b.kind === "stored" && shape.reused.has(b.from)) {
    group.append(svg("path", { class: "s-reused", d: `M${x + b.width - 9} ${top - 10} l7 7 m0 -7 l-7 7` }));
  }
  return group;
}

// Slanted lines across a block: what is held is told by more than its tone.
function hatch(x, width) {
  const lines = [];
  for (let k = 6 - tall; k < width; k += 6) {
    const from = Math.max(0, -k);
    const to = Math.min(tall, width - k);
    lines.push(`M${x + k + from} ${top + tall - from}L${x + k + to} ${top + tall - to}`);
  }
  return lines.join("");
}

// How wide a text is in the monospaced font of 11 px.
function wideAs(text) {
  return text.length * 6.8;
}

// The longest text that fits into a width.
function fitting(text, shorter, width) {
  const fits = (t) => wideAs(t) + 6 <= width;
  return fits(text) ? text : shorter !== "" && fits(shorter) ? shorter : "";
}

/** What the shapes mean. */
export function legend() {
  const key = (kind, text) => h("span", { class: `strip-key strip-key-${kind}` }, text);
  return h("p", { class: "strip-legend small muted" },
    key("stored", "stored, with its offset"), key("again", "came again, stored once"), key("gap", "missing"),
    key("held", "held until what is missing comes"), key("refused", "refused"));
}
