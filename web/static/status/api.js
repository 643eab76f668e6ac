// Talks to the server that the page came from.

const tokenKey = "oncelog.token";
let token = readToken();

function readToken() {
  try {
    return sessionStorage.getItem(tokenKey) ?? "";
  } catch {
    return "";
  }
}

/** Takes a token for the requests to come. It is kept until the tab is closed. */
export function useToken(text) {
  token = text;
  try {
    sessionStorage.setItem(tokenKey, text);
  } catch {
    // It holds for this page only.
  }
}

/** Whether there is a token to send. */
export function hasToken() {
  return token !== "";
}

/** The headers that every request carries. */
export function credentials() {
  return token === "" ? {} : { Authorization: `Bearer ${token}` };
}

/** A refusal of the server (RFC 9457), or that there was no answer: then its code is "no-answer". */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `status ${status}`);
    this.status = status;
    this.code = body.code ?? "";
    this.body = body;
  }
}

/** The path of an API resource: path`/topics/${name}` escapes what is put in. */
export function path(strings, ...values) {
  return strings.reduce((p, s, i) => p + encodeURIComponent(values[i - 1]) + s);
}

/** A query of the parameters that are set: {limit: 5, topic: ""} gives "?limit=5". */
export function query(params) {
  const set = Object.entries(params).filter(([, v]) => v !== "" && v !== null && v !== undefined);
  return set.length === 0 ? "" : `?${new URLSearchParams(set)}`;
}

/**
 * Sends a request and gives {status, headers, text}, whatever the status is.
 * It fails with a Problem when there is no answer.
 */
export async function send(method, url, { body, headers, signal } = {}) {
  try {
    const response = await fetch(url, { method, body, headers: { ...credentials(), ...headers }, signal, cache: "no-store" });
    return { status: response.status, headers: response.headers, text: await response.text() };
  } catch (error) {
    if (signal?.aborted) {
      throw error;
    }
    throw new Problem(0, { code: "no-answer", detail: "The server does not answer." });
  }
}

/** Sends a request and gives the JSON of its answer; what the server refuses is a Problem. */
export async function call(method, url, options) {
  const { status, text } = await send(method, url, options);
  let body;
  try {
    body = text === "" ? {} : JSON.parse(text);
  } catch {
    body = { detail: `The answer is not JSON (status ${status}).` };
  }
  if (status < 200 || status > 299) {
    throw new Problem(status, body);
  }
  return body;
}

/** GET. */
export function get(url, options) {
  return call("GET", url, options);
}

/** POST or PUT of a JSON body. */
export function sendJSON(method, url, body) {
  return call(method, url, { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
}
