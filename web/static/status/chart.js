// Lines over the last minutes, by uPlot.

import { h, replace, setAttribute, setText } from "./dom.js";
import { clock } from "./format.js";
import { onResize, palette } from "./paint.js";

// How many points a line has at most, so that it is one and not a scribble.
const most = 75;

/**
 * A chart: {element, draw(history), close()}. series are {name, value(samples), tone, dash},
 * where samples are those of one second, or of some when there are many; format writes a
 * value; with log the scale is logarithmic.
 */
export function chart({ title, id, series, format, none, log = false }) {
  const plot = h("div", { class: "chart-plot", role: "img", id });
  const readout = h("p", { class: "small muted chart-readout" });
  const keys = h("p", { class: "chart-keys small", "aria-hidden": true },
    series.map((s) => h("span", { class: `key key-${s.tone}${s.dash ? " key-dash" : ""}` }, s.name)));
  const element = h("figure", { class: "panel chart" }, h("figcaption", null, h("h2", null, title), keys), plot, readout);
  // 10 ms on the axis, not 10.0 ms; null is a line for which there is no room to name it.
  const short = (n) => (n === null ? "" : format(n).replace(".0 ", " "));
  let drawn = null; // the plot, made again for another theme
  let data = [[], ...series.map(() => [])];

  function make() {
    const c = palette();
    const grid = { stroke: c.line, width: 1 };
    drawn?.destroy();
    replace(plot);
    drawn = new uPlot({
      width: Math.max(plot.clientWidth, 100), height: Math.max(plot.clientHeight, 100), legend: { show: false }, padding: [8, 18, 0, 0],
      cursor: { y: false, points: { size: 6 }, drag: { setScale: false } },
      scales: { x: { time: true }, y: log ? { distr: 3, range: decades } : { range: (_, __, max) => [0, Math.max(max * 1.15, 4)] } },
      axes: [
        { stroke: c.ink3, grid: { show: false }, ticks: { show: false }, font: `11px ${c.font}`, size: 26, space: 70,
          values: (_, ticks) => ticks.map((t) => clock(t * 1000).slice(0, 5)), incrs: [60, 120, 300] },
        { stroke: c.ink3, grid, ticks: { show: false }, font: `11px ${c.font}`, size: 58, values: (_, ticks) => ticks.map(short), ...(log ? { splits: powers, filter: (_, ticks) => ticks } : {}) },
      ],
      series: [{}, ...series.map((s) => ({
        stroke: c[s.tone], width: 1.5, dash: s.dash ? [4, 3] : undefined, spanGaps: true, points: { show: few, size: 5 },
      }))],
      hooks: { setCursor: [(u) => read(u.cursor.idx)] },
    }, data, plot);
  }

  // What the cursor points at, or the newest values.
  function read(i) {
    const at = i ?? data[0].length - 1;
    const values = series.map((s, n) => [s.name, data[n + 1][at]]).filter(([, v]) => v !== null && v !== undefined);
    const text = values.length === 0 ? none : values.map(([name, v]) => `${name} ${format(v)}`).join(" · ");
    setText(readout, i === null || i === undefined || data[0][at] === undefined ? text : `${clock(data[0][at] * 1000)}: ${text}`);
  }

  const stop = onResize(plot, () => {
    if (plot.clientWidth > 0) {
      make();
    }
  });
  return {
    element,
    draw(history) {
      const bins = binned(history.samples);
      data = [bins.map((b) => b.at(-1).at / 1000), ...series.map((s) => bins.map(s.value))];
      if (drawn === null) {
        if (plot.clientWidth > 0) {
          make();
        }
      } else {
        drawn.setData(data);
      }
      if (drawn === null || drawn.cursor.idx === null || drawn.cursor.idx === undefined) {
        read(null);
      }
      setAttribute(plot, "aria-label", `${title}: ${readout.textContent}`);
    },
    close() {
      stop();
      drawn?.destroy();
    },
  };
}

// Samples, some seconds together where there are many. Where the seconds are parted does
// not depend on what is newest, so that the line does not quiver.
function binned(samples) {
  const seconds = Math.ceil(samples.length / most);
  const bins = [];
  let last = null;
  for (const s of samples) {
    const bin = Math.floor(s.at / 1000 / seconds);
    if (bin !== last) {
      bins.push([]);
      last = bin;
    }
    bins.at(-1).push(s);
  }
  return bins;
}

// Whether a line has so few values that it may not be seen as a line.
function few(plot, series) {
  return plot.data[series].filter((v) => v !== null).length < 4;
}

// The powers of ten around what is drawn.
function decades(_, min, max) {
  if (!(min > 0)) {
    return [100, 10_000];
  }
  const low = Math.floor(Math.log10(min));
  return [10 ** low, 10 ** Math.max(Math.ceil(Math.log10(max)), low + 1)];
}

function powers(_, __, min, max) {
  const out = [];
  for (let n = min; n <= max * 1.01; n *= 10) {
    out.push(n);
  }
  return out;
}
