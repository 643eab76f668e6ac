// Follows GET /events. It is read with fetch and not with EventSource, which sends no
// Authorization; like EventSource it comes back by itself, with Last-Event-ID, so that
// nothing is missing when the connection was.

import { credentials, query } from "./api.js";

const longestPause = 5000; // ms

/** Stream of server events. Listeners get (kind, value): see the constructor. */
export class Stream {
  /**
   * tell is called with ("sample", event), ("partition", event), ("producer", event) as
   * they come, and with ("state", "live" | "broken" | "unauthenticated" | "forbidden").
   */
  constructor(tell) {
    this.tell = tell;
    this.lastID = "";
    this.retry = 1000;
    this.look = {};
    this.abort = null;
    this.state = "";
  }

  /** Follows the server, and what look names: {topic, partition}, {pid} or nothing. */
  open(look = {}) {
    if (this.abort !== null && JSON.stringify(look) === JSON.stringify(this.look)) {
      return;
    }
    this.look = look;
    this.abort?.abort();
    this.abort = new AbortController();
    this.run(this.abort.signal);
  }

  /** Begins anew, with other credentials say. */
  reopen() {
    this.abort?.abort();
    this.abort = null;
    this.open(this.look);
  }

  async run(signal) {
    let failures = 0;
    while (!signal.aborted) {
      let status = 0;
      try {
        const headers = { Accept: "text/event-stream", ...credentials() };
        if (this.lastID !== "") {
          headers["Last-Event-ID"] = this.lastID;
        }
        const response = await fetch(`/events${query(this.look)}`, { headers, signal, cache: "no-store" });
        status = response.status;
        if (status === 200) {
          failures = 0;
          await this.read(response.body, signal);
        }
      } catch {
        // The connection broke: try again.
      }
      if (signal.aborted) {
        return;
      }
      if (status === 401 || status === 403) {
        this.enter(status === 401 ? "unauthenticated" : "forbidden");
        return; // until there are other credentials
      }
      this.enter("broken");
      failures++;
      await pause(Math.min(this.retry * failures, longestPause), signal);
    }
  }

  enter(state) {
    if (this.state !== state) {
      this.state = state;
      this.tell("state", state);
    }
  }

  async read(body, signal) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done || signal.aborted) {
        return;
      }
      text += value;
      const blocks = text.split("\n\n");
      text = blocks.pop();
      for (const block of blocks) {
        this.take(block);
      }
    }
  }

  take(block) {
    let id = "";
    let name = "sample";
    let data = "";
    for (const line of block.split("\n")) {
      const colon = line.indexOf(": ");
      const value = line.slice(colon + 2);
      switch (line.slice(0, colon)) {
        case "id":
          id = value;
          break;
        case "event":
          name = value;
          break;
        case "data":
          data += value;
          break;
        case "retry":
          this.retry = Number(value);
          break;
      }
    }
    if (data === "") {
      return;
    }
    if (id !== "") {
      this.lastID = id;
    }
    this.enter("live");
    this.tell(name, JSON.parse(data)); // what the server says of itself; no payload is in it
  }
}

function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
