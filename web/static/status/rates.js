// Rates from counts that are looked at now and again.

/** Rates of many counts, by name. */
export class Rates {
  constructor() {
    this.known = new Map();
  }

  /** Takes a count at a time in milliseconds. */
  add(name, value, at) {
    const before = this.known.get(name);
    if (before === undefined || value < before.value) {
      this.known.set(name, { value, at, rate: null });
    } else if (at > before.at) {
      this.known.set(name, { value, at, rate: (value - before.value) / ((at - before.at) / 1000) });
    }
  }

  /** The rate of a count between the last two looks; null when there was only one. */
  of(name) {
    return this.known.get(name)?.rate ?? null;
  }
}
