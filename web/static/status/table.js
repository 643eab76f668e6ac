// Tables that change while they are looked at. Rows and cells are kept and only their
// contents change, so the focus stays where it is and a screen reader is left alone.

import { h, replace, setAttribute, setText } from "./dom.js";

/**
 * A table: {element, show(rows, message)}. columns are {id, name, num, head, sort, cell(row)};
 * a cell is a text or a node, and made again only when key(row) or a text changes. The
 * column with head names the row; of one with a tone, what is not 0 stands out. onSort(id)
 * makes the names of columns with sort into buttons; sorted() says {id, descending}.
 * empty is a text, or nodes. Nothing is shown before the first rows.
 */
export function table({ caption, columns, onSort, sorted, empty, id }) {
  const heads = columns.map((c) => {
    const head = h("th", { scope: "col", role: "columnheader", class: c.num && "num" });
    head.append(c.sort && onSort ? h("button", { type: "button", class: "sort", onclick: () => onSort(c.id) }, c.name) : c.name);
    return head;
  });
  const body = h("tbody", { role: "rowgroup" });
  const none = h("p", { class: "muted table-none", hidden: true });
  const grid = h("table", { role: "table", id, hidden: true },
    h("caption", { class: "visually-hidden" }, caption),
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads)), body);
  const element = h("div", { class: "cards" }, grid, none);

  function rowOf() {
    const cells = columns.map((c) => (c.head
      ? h("th", { scope: "row", role: "rowheader", class: c.num && "num", "data-label": c.name })
      : h("td", { role: "cell", class: c.num && "num", "data-label": c.name })));
    const row = h("tr", { role: "row" }, cells);
    row.cells_ = cells; // cells would be looked up each time
    row.keys_ = [];
    return row;
  }

  return {
    element,
    /** Shows rows; of no rows, the message or what empty says. */
    show(rows, message) {
      while (body.children.length > rows.length) {
        body.lastElementChild.remove();
      }
      rows.forEach((data, i) => {
        let row = body.children[i];
        if (row === undefined) {
          row = rowOf();
          body.append(row);
        }
        columns.forEach((c, n) => {
          const content = c.cell(data);
          if (typeof content === "string") {
            row.keys_[n] = undefined;
            setText(row.cells_[n], content);
            if (c.tone) {
              setAttribute(row.cells_[n], "data-tone", content === "0" ? "none" : c.tone);
            }
          } else if (row.keys_[n] !== content.key) {
            row.keys_[n] = content.key;
            replace(row.cells_[n], content.node());
          }
        });
      });
      none.hidden = rows.length > 0;
      grid.hidden = rows.length === 0;
      if (rows.length === 0) {
        replace(none, message ?? empty);
      }
      const by = sorted?.();
      columns.forEach((c, n) => {
        if (c.sort) {
          setAttribute(heads[n], "aria-sort", by?.id === c.id ? (by.descending ? "descending" : "ascending") : null);
        }
      });
    },
  };
}

/** A cell that is a node, made when its key changes. */
export function cell(key, node) {
  return { key: String(key), node };
}

/**
 * Buttons to turn pages of a list whose pages are found by tokens: {element, token,
 * reset(), show(next, shown)}. onTurn is called when another page is wanted.
 */
export function pager(onTurn) {
  let before = []; // tokens of the pages before this one
  let token = "";
  let next = null;
  const back = h("button", { type: "button", onclick: () => turn(before.pop(), false) }, "Previous");
  const forth = h("button", { type: "button", onclick: () => turn(next, true) }, "Next");
  const where = h("span", { class: "muted small pager-where" });
  const element = h("nav", { class: "pager", "aria-label": "Pages of the list", hidden: true }, back, where, forth);

  function turn(to, forward) {
    if (forward) {
      before.push(token);
    }
    token = to;
    onTurn();
  }

  return {
    element,
    get token() {
      return token;
    },
    /** Back to the first page. */
    reset() {
      before = [];
      token = "";
    },
    /** Says what comes after this page: a token, or null. */
    show(following) {
      next = following;
      back.disabled = before.length === 0;
      forth.disabled = following === null;
      element.hidden = back.disabled && forth.disabled;
      setText(where, `page ${before.length + 1}`);
    },
  };
}

/** What a page may take of a server: it waits so many times as long as an answer took. */
const restraint = 20;

/**
 * Loads something now and again: {run(), tick(), close()}. What comes late, after a newer
 * load or the end of the view, is dropped.
 */
export function loader(load, show, fail) {
  let abort = new AbortController();
  let busy = false;
  let again = false;
  let began = 0;
  let took = 0;
  return {
    /** Loads if so many seconds have passed, and the server had time for others. */
    tick(seconds) {
      if (!busy && performance.now() - began > Math.max(seconds * 1000 - 500, restraint * took)) {
        this.run();
      }
    },
    /** Loads now; with force, what is being loaded is given up. */
    async run(force = false) {
      if (busy && !force) {
        again = true;
        return;
      }
      abort.abort();
      abort = new AbortController();
      const { signal } = abort;
      busy = true;
      began = performance.now();
      try {
        const value = await load(signal);
        took = performance.now() - began;
        if (!signal.aborted) {
          show(value);
        }
      } catch (error) {
        if (!signal.aborted) {
          fail(error);
        }
      }
      if (!signal.aborted) {
        busy = false;
        if (again) {
          again = false;
          this.run();
        }
      }
    },
    close() {
      abort.abort();
    },
  };
}
