// How numbers, sizes and times are written.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** A count: 12,345. */
export function count(n) {
  return whole.format(n);
}

/** A count and its noun: 1 record, 2 records. */
export function counted(n, noun, plural = `${noun}s`) {
  return `${count(n)} ${n === 1 ? noun : plural}`;
}

/** A rate: tenths only where they matter, a dash for one that is not known. */
export function rate(n) {
  if (n === null) {
    return "–";
  }
  return n > 0 && n < 10 && !Number.isInteger(n) ? tenths.format(n) : whole.format(n);
}

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** A size in bytes: 1.5 MiB. */
export function bytes(n) {
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) {
    n /= 1024;
    unit++;
  }
  return `${unit === 0 || n >= 100 ? whole.format(n) : tenths.format(n)} ${units[unit]}`;
}

/** A short duration from microseconds: 812 µs, 1.4 ms, 2.0 s. */
export function micros(n) {
  if (n < 1000) {
    return `${whole.format(n)} µs`;
  }
  if (n < 1e6) {
    return `${n < 1e5 ? tenths.format(n / 1000) : whole.format(n / 1000)} ms`;
  }
  return `${tenths.format(n / 1e6)} s`;
}

const steps = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

/** A duration in its two largest units: 3 d 4 h. */
export function duration(ms) {
  let seconds = Math.max(0, Math.round(ms / 1000));
  const parts = [];
  for (const [unit, size] of steps) {
    if (seconds >= size || (unit === "s" && parts.length === 0)) {
      parts.push(`${Math.floor(seconds / size)} ${unit}`);
      seconds %= size;
      if (parts.length === 2) {
        break;
      }
    } else if (parts.length > 0) {
      break;
    }
  }
  return parts.join(" ");
}

// A duration in one unit, rounded: 7 d where duration says 6 d 23 h.
function nearly(ms) {
  const [unit, size] = steps.find(([, s]) => ms >= 1500 * s) ?? steps.at(-1);
  return `${Math.max(1, Math.round(ms / 1000 / size))} ${unit}`;
}

/** How long ago a time was, coarsely, so that it does not change with every look. */
export function ago(time, now = Date.now()) {
  const ms = now - Date.parse(time);
  if (ms < 1500) {
    return "now";
  }
  return ms < 60_000 ? `${Math.round(ms / 1000)} s ago` : `${duration(ms).split(" ").slice(0, 2).join(" ")} ago`;
}

/** How long it takes until a time. */
export function until(time, now = Date.now()) {
  const ms = Date.parse(time) - now;
  if (ms <= 0) {
    return "now";
  }
  return ms > 100 * 365 * 86_400_000 ? "never" : `in ${nearly(ms)}`;
}

const two = (n) => String(n).padStart(2, "0");

/** The local time of day: 12:04:05. */
export function clock(time) {
  const d = new Date(time);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** Local date and time: 2026-01-02 03:04:05. */
export function dateTime(time) {
  const d = new Date(time);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock(time)}`;
}

/** A stretch of sequences or offsets: 7, or 7–9. */
export function range(first, last) {
  return first === last ? count(first) : `${count(first)}–${count(last)}`;
}
