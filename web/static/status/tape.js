// The tape: the last minutes, a column a second. What was stored grows upwards in
// ink; below it, in lanes of their own, what came again, what was out of order and what
// was refused.

import { h, setAttribute, setText } from "./dom.js";
import { clock, count, counted, rate } from "./format.js";
import { span } from "./history.js";
import { onResize, palette } from "./paint.js";

const lanes = { stored: 104, again: 40, order: 20, refused: 20 };
const gap = 8;
const axis = 22;
const gutter = 78; // for the names of the lanes, left of the columns
const height = 12 + lanes.stored + lanes.again + lanes.order + lanes.refused + 3 * gap + axis;

/** Draws a history: {element, draw(history), minutes(), close()}. */
export function tape() {
  const canvas = h("canvas", { class: "tape", role: "img", id: "tape", style: { height: `${height}px` } });
  const readout = h("p", { class: "tape-readout small muted", "aria-hidden": true });
  const element = h("figure", { class: "tape-figure" }, canvas, readout);
  let history = null;
  let pointer = null; // x in CSS pixels, or null
  let labelled = 0;
  let shown = span; // seconds

  function draw() {
    if (history === null || canvas.clientWidth === 0) {
      return;
    }
    const width = canvas.clientWidth;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const g = canvas.getContext("2d");
    g.scale(ratio, ratio);
    shown = seconds(width, history);
    const samples = visible(history, shown);
    const w = (width - gutter) / shown;
    paint(g, width, samples, w, pointer);
    setText(readout, reading(pointer === null ? null : sampleAt(samples, w, width, pointer)));
    if (Date.now() - labelled > 10_000) {
      labelled = Date.now();
      setAttribute(canvas, "aria-label", summary(history));
    }
  }

  canvas.addEventListener("pointermove", (event) => {
    pointer = event.offsetX;
    draw();
  });
  canvas.addEventListener("pointerleave", () => {
    pointer = null;
    draw();
  });
  const stop = onResize(canvas, draw);
  return {
    element,
    draw(newest) {
      history = newest;
      draw();
    },
    /** How many minutes are on the tape. */
    minutes: () => shown / 60,
    close: stop,
  };
}

// A narrow tape shows fewer seconds, for a column must not be thinner than this.
const thinnest = 2.4;
const thickest = 8; // of a bar
const stretches = [60, 120, span]; // seconds; the tape of a server that has just started is short

function seconds(width, history) {
  const fitting = Math.max(60, Math.floor((width - gutter) / thinnest / 60) * 60);
  return Math.min(stretches.find((s) => s >= history.samples.length) ?? span, fitting);
}

function visible(history, shown) {
  return history.samples.slice(-shown);
}

function sampleAt(samples, w, width, x) {
  return samples[Math.floor((x - width) / w) + samples.length] ?? null;
}

function paint(g, width, samples, w, pointer) {
  const c = palette();
  const bar = Math.min(Math.max(w - (w > 3 ? 1 : 0.35), 0.75), thickest);
  const floor = 12 + lanes.stored; // where what was stored stands
  const againTop = floor + gap;
  const orderTop = againTop + lanes.again + gap;
  const refusedTop = orderTop + lanes.order + gap;

  g.clearRect(0, 0, width, height);
  minuteLines(g, c, width, samples, w);
  for (const y of [floor, againTop, orderTop + lanes.order, refusedTop + lanes.refused]) {
    g.fillStyle = c.line;
    g.fillRect(0, Math.round(y), width, 1);
  }
  label(g, c, "stored", 0, floor - 6);
  label(g, c, "came again", 0, againTop + 16);
  label(g, c, "out of order", 0, orderTop + lanes.order - 6);
  label(g, c, "refused", 0, refusedTop + lanes.refused - 6);

  const most = Math.max(1, ...samples.map((s) => s.records));
  const mostAgain = Math.max(1, ...samples.map((s) => s.duplicates));
  samples.forEach((s, i) => {
    const x = width - (samples.length - i) * w + (w - bar) / 2; // the newest is at the right end
    if (s.records > 0) {
      // A power below 1 keeps seconds with one record visible beside those with thousands.
      const tall = Math.max((s.records / most) ** 0.7 * lanes.stored, 2);
      g.fillStyle = c.ink;
      g.fillRect(x, floor - tall, bar, tall);
    }
    if (s.duplicates > 0) {
      const deep = Math.max(Math.sqrt(s.duplicates / mostAgain) * (lanes.again - 2), 5);
      g.fillStyle = c.accent;
      g.fillRect(x, againTop + 1, bar, deep);
    }
    mark(g, c, s, x + bar / 2, orderTop + lanes.order / 2, refusedTop + lanes.refused / 2);
  });
  samples.forEach((s, i) => { // above their neighbours, for they are what matters
    if (s.lastingGaps > 0) {
      lasting(g, c, width - (samples.length - i - 0.5) * w, orderTop + lanes.order / 2);
    }
  });
  label(g, c, `${rate(most)}/s`, 0, 12 + 10);
  if (pointer !== null && pointer > gutter) {
    g.fillStyle = c.ink3;
    g.fillRect(Math.round(pointer), 0, 1, height - axis);
  }
}

function minuteLines(g, c, width, samples, w) {
  if (samples.length === 0) {
    return;
  }
  const now = samples[samples.length - 1].at;
  for (let m = 1; m * 60 * w < width - gutter - 1; m++) {
    const x = Math.round(width - m * 60 * w);
    g.fillStyle = c.line;
    g.fillRect(x, 0, 1, height - axis);
    label(g, c, clock(now - m * 60_000).slice(0, 5), x, height - 6, "center");
  }
  label(g, c, "now", width, height - 6, "right");
}

function label(g, c, text, x, y, align = "left") {
  g.font = `500 11px ${c.font}`;
  g.textAlign = align;
  g.fillStyle = c.ink3;
  g.fillText(text, x, y);
}

// Shapes, not only tones: a diamond waited, an open triangle came too early, a full one
// left a gap, an upright bar is fenced off, a cross is anything else that was refused.
function mark(g, c, s, x, order, refused) {
  if (s.passingGaps > 0) {
    g.strokeStyle = c.wait;
    g.lineWidth = 1.5;
    poly(g, [[x, order - 5], [x + 5, order + 4], [x - 5, order + 4]]);
    g.stroke();
  } else if (s.held > 0) {
    g.fillStyle = c.wait;
    poly(g, [[x, order - 4.5], [x + 4.5, order], [x, order + 4.5], [x - 4.5, order]]);
    g.fill();
  }
  if (s.fenced > 0) {
    g.fillStyle = c.lost;
    g.fillRect(x - 1.25, refused - 7, 2.5, 14);
  }
  if (s.reused + s.overlaps + s.expired > 0) {
    g.strokeStyle = c.lost;
    g.lineWidth = 2;
    g.beginPath();
    g.moveTo(x - 4, refused - 4);
    g.lineTo(x + 4, refused + 4);
    g.moveTo(x + 4, refused - 4);
    g.lineTo(x - 4, refused + 4);
    g.stroke();
  }
}

function lasting(g, c, x, y) {
  g.fillStyle = c.lost;
  g.strokeStyle = c.surface;
  g.lineWidth = 3;
  poly(g, [[x, y - 7], [x + 6, y + 5], [x - 6, y + 5]]);
  g.stroke();
  g.fill();
}

function poly(g, points) {
  g.beginPath();
  points.forEach(([x, y], i) => (i === 0 ? g.moveTo(x, y) : g.lineTo(x, y)));
  g.closePath();
}

function reading(s) {
  if (s === null) {
    return "A column a second. Point at one to read it.";
  }
  const parts = [`${clock(s.at)}: ${rate(s.records)} records/s in ${rate(s.appends)} batches/s`];
  for (const [name, text] of [["duplicates", "came again"], ["held", "waited"], ["passingGaps", "too early"], ["lastingGaps", "with a gap"],
    ["fenced", "fenced"], ["reused", "reused"], ["overlaps", "overlapping"], ["expired", "expired"]]) {
    if (s[name] > 0) {
      parts.push(`${count(s[name])} ${text}`);
    }
  }
  return parts.join(" · ");
}

function summary(history) {
  const sum = (name) => history.sum(name);
  const refused = sum("fenced") + sum("reused") + sum("overlaps") + sum("expired");
  return `The last ${counted(Math.round(history.samples.length / 60), "minute")}: ${counted(sum("stored"), "record")} stored, ` +
    `${counted(sum("duplicates"), "batch", "batches")} came again, ${counted(sum("held") + sum("passingGaps"), "batch", "batches")} out of order, ` +
    `${counted(sum("lastingGaps"), "gap")}, ${counted(refused, "batch", "batches")} refused.`;
}
