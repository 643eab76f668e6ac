// The records of a partition, page by page, with the headers of the batches that they
// came in beside them.

import { get, path, query } from "./api.js";
import { h, replace, setText } from "./dom.js";
import { bytes, clock, count, counted, dateTime, range } from "./format.js";
import { failure } from "./failure.js";
import { loader } from "./table.js";
import { producerLink } from "./links.js";
import { bytesOf, show, textOf } from "./values.js";

const pageSize = 20;
const most = 256 * 1024; // bytes of one page
const cutAt = 600; // characters of a value that are shown at first

/** Records of a partition: {element, advance(earliest, next), close()}. */
export function records(topic, number) {
  let bounds = { earliest: 0, next: 0 };
  let from = null; // first offset of the page; null: the end is followed
  let loaded = null;
  const trouble = h("div");
  const list = h("div", { class: "batches" });
  const where = h("span", { class: "muted small", id: "records-where" });
  const mode = h("select", { id: "values-as", onchange: () => render() },
    h("option", { value: "text" }, "text"), h("option", { value: "json" }, "JSON"), h("option", { value: "base64" }, "base64"));
  const older = h("button", { type: "button", onclick: () => go((from ?? start()) - pageSize) }, "Older");
  const newer = h("button", { type: "button", onclick: () => go(loaded === null ? start() : loaded.next) }, "Newer");
  const latest = h("button", { type: "button", onclick: () => go(null) }, "Latest");
  const offset = h("input", { id: "offset", inputmode: "numeric", size: 12, autocomplete: "off", "aria-label": "Offset to go to", placeholder: "offset" });
  const element = h("section", { class: "panel records", "aria-labelledby": "records-title" },
    h("div", { class: "records-head" },
      h("h2", { id: "records-title" }, "Records"), where,
      h("form", { class: "records-tools", onsubmit: seek },
        h("label", { for: "values-as" }, "Values as"), mode, offset, h("button", null, "Go"))),
    trouble, list,
    h("nav", { class: "pager", "aria-label": "Pages of records" }, older, newer, latest));

  const load = loader(async (signal) => {
    const first = from ?? start();
    const [page, batches] = await Promise.all([
      get(path`/topics/${topic}/partitions/${number}/records` + query({ offset: first, limit: pageSize, maxBytes: most, values: "base64" }), { signal }),
      get(path`/topics/${topic}/partitions/${number}/batches` + query({ offset: first, limit: pageSize }), { signal }),
    ]);
    return { first, rows: page.records, next: page.nextOffset, batches: batches.items };
  }, (page) => {
    replace(trouble);
    loaded = page;
    render();
  }, (error) => replace(trouble, failure(error)));

  function start() {
    return Math.max(bounds.earliest, bounds.next - pageSize);
  }

  function go(to) {
    from = to === null || to >= bounds.next ? null : Math.max(to, bounds.earliest);
    load.run(true);
  }

  function seek(event) {
    event.preventDefault();
    const n = Number(offset.value.replaceAll(",", ""));
    if (offset.value !== "" && Number.isSafeInteger(n) && n >= 0) {
      go(n);
    }
  }

  function render() {
    if (loaded === null) {
      return;
    }
    const { first, rows, next, batches } = loaded;
    setText(where, rows.length === 0 ? "nothing is stored here" : `${range(first, next - 1)} of ${range(bounds.earliest, Math.max(bounds.next - 1, 0))}${from === null ? ", following the end" : ""}`);
    older.disabled = first <= bounds.earliest;
    newer.disabled = from === null || next >= bounds.next;
    latest.disabled = from === null;
    replace(list, batches.filter((b) => b.baseOffset < next).map((b) =>
      group(b, rows.filter((r) => r.offset >= b.baseOffset && r.offset <= b.lastOffset), mode.value)));
  }

  return {
    element,
    /** Takes the ends of the partition; at the end, what is new is shown. */
    advance(earliest, next) {
      const moved = bounds.next !== next || bounds.earliest !== earliest;
      bounds = { earliest, next };
      if (loaded === null || (moved && from === null)) {
        load.run();
      } else if (moved) {
        render();
      }
    },
    close: load.close,
  };
}

// A batch: its records, and its header beside them.
function group(batch, rows, mode) {
  const plain = batch.pid === null;
  const partly = rows.length < batch.count;
  return h("article", { class: "batch", "aria-label": `Batch at offset ${batch.baseOffset}` },
    h("ol", { class: "batch-records" }, rows.map((r) => record(r, mode))),
    h("div", { class: "batch-head small" },
      h("p", null, plain ? "no producer, at least once" : [producerLink(batch.pid), `, epoch ${count(batch.epoch)}`]),
      h("p", null, !plain && `sequence ${range(batch.baseSeq, batch.baseSeq + batch.count - 1)} · `, counted(batch.count, "record"),
        partly && `, ${count(rows.length)} on this page`),
      h("p", { class: "faint" }, h("span", { title: dateTime(batch.appendedAt) }, clock(batch.appendedAt)), ` · ${bytes(batch.bytes)} · CRC `, h("code", null, batch.crc))));
}

function record(r, mode) {
  const value = r.valueBase64;
  const shown = value === undefined ? null : show(value, mode);
  return h("li", { class: "record" },
    h("span", { class: "record-offset" }, count(r.offset)),
    h("div", { class: "record-body" },
      (r.key !== undefined || r.keyBase64 !== undefined) && h("span", { class: "record-key mono" }, r.key ?? keyOf(r.keyBase64)),
      shown === null ? h("span", { class: "muted" }, "tombstone (null)") : [
        text(shown.text, value),
        shown.note !== "" && h("span", { class: "small muted" }, ` ${shown.note}`),
      ],
      r.headers.length > 0 && h("span", { class: "record-headers small muted" }, r.headers.map((x) => `${x.name}: ${x.value}`).join(" · "))));
}

// A key that is not text in the log may be text all the same.
function keyOf(base64) {
  return textOf(bytesOf(base64)) ?? base64;
}

function text(whole, base64) {
  if (whole.length <= cutAt) {
    return h("pre", { class: "record-value" }, whole);
  }
  const pre = h("pre", { class: "record-value" }, `${whole.slice(0, cutAt)}…`);
  const more = h("button", {
    type: "button", class: "quiet",
    onclick() {
      setText(pre, whole);
      more.remove();
    },
  }, `Show all ${bytes(bytesOf(base64).length)}`);
  return [pre, more];
}
