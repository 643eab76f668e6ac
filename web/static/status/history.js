// What the page knows of the last minutes, from the event stream.

/** How many seconds are kept and drawn. */
export const span = 300;

/** How many incidents are kept. */
const keptIncidents = 200;

/** The counts of what was not simply stored, as the events name them. */
export const troubles = ["duplicates", "held", "passingGaps", "lastingGaps", "fenced", "expired", "reused", "overlaps"];

/** The last minutes: samples, oldest first, and incidents, newest first. */
export class History {
  constructor() {
    this.samples = [];
    this.incidents = [];
    this.instance = "";
  }

  /** The newest event, or null. */
  get last() {
    return this.samples.length === 0 ? null : this.samples[this.samples.length - 1].event;
  }

  /** Takes an event. A server that was started anew begins a new history. */
  add(event) {
    if (event.instance !== this.instance) {
      this.instance = event.instance;
      this.samples = [];
      this.incidents = [];
    }
    const at = Date.parse(event.at);
    const before = this.last;
    if (before !== null && at <= Date.parse(before.at)) {
      return; // known already
    }
    const grown = (name) => (before === null ? 0 : event.totals[name] - before.totals[name]);
    const seconds = Math.max(event.intervalMs / 1000, 0.001);
    const sample = {
      at, event,
      appends: grown("appends") / seconds,
      records: grown("records") / seconds,
      bytes: grown("bytes") / seconds,
      stored: grown("records"),
      commits: grown("commits"),
    };
    for (const name of troubles) {
      sample[name] = grown(name);
    }
    this.samples.push(sample);
    if (this.samples.length > span) {
      this.samples.shift();
    }
    for (const incident of event.incidents) {
      this.incidents.unshift(incident);
    }
    this.incidents.length = Math.min(this.incidents.length, keptIncidents);
  }

  /** The mean of a sample's member over the last seconds. */
  mean(name, seconds = 5) {
    const some = this.samples.slice(-seconds);
    return some.length === 0 ? 0 : some.reduce((sum, s) => sum + s[name], 0) / some.length;
  }

  /** The sum of a sample's member over all that is kept. */
  sum(name) {
    return this.samples.reduce((sum, s) => sum + s[name], 0);
  }
}
