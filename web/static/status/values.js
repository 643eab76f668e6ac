// Turns the bytes of keys and values into something to read. Payloads are only ever
// decoded here, never parsed: what a producer has sent must neither change a number
// (JSON.parse rounds above 2^53) nor become anything but text.

/** The bytes of base64. */
export function bytesOf(base64) {
  const text = atob(base64);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) {
    out[i] = text.charCodeAt(i);
  }
  return out;
}

/** The text that bytes are in UTF-8, or null. */
export function textOf(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/**
 * What to show of a value in base64: {text, note}. mode is "text", "json" or "base64"; the
 * note says why it is shown in another way than was asked for.
 */
export function show(base64, mode) {
  if (mode === "base64") {
    return { text: base64, note: "" };
  }
  const text = textOf(bytesOf(base64));
  if (text === null) {
    return { text: base64, note: "not UTF-8, shown as base64" };
  }
  if (mode === "json") {
    const laidOut = layOut(text);
    return laidOut === null ? { text, note: "not JSON" } : { text: laidOut, note: "" };
  }
  return { text, note: "" };
}

const token = /\s*(?:("(?:[^"\\\u0000-\u001f]|\\.)*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)|(true|false|null)|([[\]{}:,]))/y;

/**
 * Lays JSON out over lines, token by token, each as it was sent. It gives null for what
 * does not consist of JSON's tokens with its brackets closed; it is no judge of the rest.
 */
export function layOut(json) {
  const open = [];
  let out = "";
  let empty = false; // right behind an opening bracket
  token.lastIndex = 0;
  const line = () => `\n${"  ".repeat(open.length)}`;
  while (json.slice(token.lastIndex).trim() !== "") {
    const m = token.exec(json);
    if (m === null) {
      return null;
    }
    const sign = m[4];
    const closes = sign === "}" || sign === "]";
    if (empty && !closes) {
      out += line();
    }
    if (sign === "{" || sign === "[") {
      open.push(sign);
      out += sign;
      empty = true;
      continue;
    }
    if (closes) {
      if (open.pop() !== (sign === "}" ? "{" : "[")) {
        return null;
      }
      out += empty ? sign : line() + sign;
    } else if (sign === ",") {
      out += `,${line()}`;
    } else {
      out += sign === ":" ? ": " : m[1] ?? m[2] ?? m[3];
    }
    empty = false;
  }
  return open.length === 0 && out !== "" ? out : null;
}
