// Try it: appends a batch, sends the same bytes again, and shows both answers.

import { get, path, query, send, sendJSON } from "./api.js";
import { h, replace, setText } from "./dom.js";
import { count } from "./format.js";
import { failure } from "./failure.js";
import { partitionLink } from "./links.js";
import { legend, strips } from "./strip.js";
import { layOut } from "./values.js";

// What can be tried. Each gives the requests that it sends, from the place of the
// producer: {epoch, next, records}.
const experiments = [
  {
    id: "again", name: "Append, then send it again", primary: true,
    about: "As if the first answer had been lost. The second one names the same offsets, and nothing is stored twice.",
    steps: (p) => {
      const body = batch(p.epoch, p.next, p.records);
      return [{ name: "The batch", body }, { name: "The same bytes again", body }];
    },
  },
  {
    id: "gap", name: "Leave a gap",
    about: "Two sequences are skipped. A batch that might only have overtaken others is held for a moment; then it is refused, and told what is missing.",
    steps: (p) => [{ name: "A batch that comes too early", body: batch(p.epoch, p.next + 2, p.records) }],
  },
  {
    id: "payload", name: "Other payload, same sequence",
    about: "A sequence that was used already, with other bytes. Taking it for a retry would lose it silently, so it is refused.",
    steps: (p) => [
      { name: "The batch", body: batch(p.epoch, p.next, p.records) },
      { name: "Its sequence, another payload", body: batch(p.epoch, p.next, p.records.map((r) => `${r} (changed)`)) },
    ],
  },
  {
    id: "fence", name: "Fence the old epoch",
    about: "A batch of the next epoch, as a new instance would send it, and then one of the old instance, which is refused.",
    steps: (p) => [
      { name: "The new instance", body: batch(p.epoch + 1, 0, p.records) },
      { name: "The old instance", body: batch(p.epoch, p.next, p.records) },
    ],
  },
];

function batch(epoch, baseSeq, records) {
  return (pid) => JSON.stringify({ pid, epoch, baseSeq, records: records.map((valueText) => ({ valueText })) });
}

export function tryIt({ follow }) {
  let pid = null;
  const topic = h("input", { id: "try-topic", value: "try-it", autocomplete: "off", spellcheck: "false", required: true, pattern: "[A-Za-z0-9._\\-]{1,249}" });
  const partition = h("input", { id: "try-partition", value: "0", inputmode: "numeric", required: true, pattern: "[0-9]{1,4}" });
  const records = h("textarea", { id: "try-records", rows: 3, spellcheck: "false" }, "order 17 was paid\norder 18 was paid");
  const who = h("p", { class: "small muted", id: "try-producer" });
  const results = h("ol", { class: "answers" });
  const status = h("p", { class: "small muted", role: "status" });
  const lines = strips("partition", "");
  const buttons = experiments.map((e) => h("button", { type: "submit", class: e.primary && "primary", value: e.id, id: `try-${e.id}` }, e.name));
  const picture = h("section", { class: "panel", "aria-labelledby": "try-line", hidden: true }, h("h2", { id: "try-line" }, "The producer's line"), legend(), lines.element);

  async function run(event) {
    event.preventDefault();
    const experiment = experiments.find((e) => e.id === event.submitter?.value) ?? experiments[0];
    buttons.forEach((b) => { b.disabled = true; });
    replace(results);
    setText(status, "Sending…");
    try {
      await prepare();
      const place = await placeOf();
      const url = path`/topics/${topic.value}/partitions/${partition.value}/batches`;
      let first = null;
      for (const step of experiment.steps({ ...place, records: texts() })) {
        const body = step.body(pid);
        const answer = await send("POST", url, { body, headers: { "Content-Type": "application/json" } });
        results.append(card(results.children.length + 1, step.name, url, body, answer, first));
        first ??= answer;
      }
      setText(status, experiment.about);
    } catch (error) {
      setText(status, "");
      replace(results, h("li", null, failure(error)));
    }
    buttons.forEach((b) => { b.disabled = false; });
    event.submitter?.focus();
  }

  function texts() {
    const all = records.value.split("\n").filter((l) => l !== "");
    return all.length === 0 ? ["(empty)"] : all;
  }

  // Sees to it that there are a topic and a producer id.
  async function prepare() {
    if (!await exists(topic.value)) {
      await sendJSON("PUT", path`/topics/${topic.value}`, {});
    }
    if (pid === null) {
      pid = (await sendJSON("POST", "/producers", {})).pid;
      setText(who, `This page writes as producer ${count(pid)}, which it took for itself.`);
      follow(pid);
    }
  }

  // Where the producer is in the partition.
  async function placeOf() {
    const { partitions } = await get(path`/producers/${pid}`);
    const here = partitions.find((p) => p.topic === topic.value && p.partition === Number(partition.value));
    return here === undefined ? { epoch: 0, next: 0 } : { epoch: here.epoch, next: here.lastSeq + 1 };
  }

  return {
    title: "Try it",
    element: h("div", { class: "view" }, h("h1", { tabindex: "-1" }, "Try it"),
      h("p", { class: "lead muted" }, "Sends real requests to this server. The topic is created if there is none of that name."),
      h("section", { class: "panel", "aria-label": "What to send" },
        h("form", { class: "try-form", onsubmit: run },
          h("div", { class: "try-where" },
            h("div", null, h("label", { for: "try-topic" }, "Topic"), topic),
            h("div", null, h("label", { for: "try-partition" }, "Partition"), partition)),
          h("div", null, h("label", { for: "try-records" }, "Records, one a line"), records),
          h("div", { class: "try-buttons" }, buttons), who)),
      status, results, picture),
    look(p) {
      if (p.pid === pid) {
        picture.hidden = p.lines.length === 0;
        lines.show(p.lines);
      }
    },
    close: lines.close,
  };
}

// Whether there is a topic. The list is asked, for browsers put a 404 on the console.
async function exists(name) {
  let token = "";
  do {
    const page = await get(`/topics${query({ limit: 1000, pageToken: token })}`);
    if (page.items.some((t) => t.name === name)) {
      return true;
    }
    token = page.nextPageToken;
  } while (token !== null);
  return false;
}

// A request and its answer. What the second answer says otherwise than the first, or
// says again, is marked.
function card(number, name, url, body, answer, first) {
  const good = answer.status < 300;
  const duplicate = /"duplicate":true/.test(answer.text);
  const verdict = duplicate ? "a duplicate: stored once" : good ? "stored" : "refused: nothing changed";
  const [, topic, part] = url.match(/^\/topics\/([^/]+)\/partitions\/(\d+)/);
  return h("li", { class: `panel answer ${good ? "" : "refused"}` },
    h("h2", null, `${number}. ${name}`),
    h("p", { class: "answer-verdict" }, h("span", { class: `tag ${duplicate ? "good mark-duplicate" : good ? "" : "lost"}` }, `${answer.status}`), " ", verdict,
      good && [" in ", partitionLink(decodeURIComponent(topic), Number(part))]),
    h("details", null, h("summary", { class: "small" }, "The request"), h("pre", { class: "small" }, `POST ${url}\nContent-Type: application/json\n\n${body}`)),
    h("pre", { class: "answer-body" }, members(answer.text).map((m) => line(m, first, number))));
}

const interesting = /^"(duplicate|baseOffset|lastOffset|nextSeq|code|expectedSeq|receivedSeq|gap|currentEpoch|originalOffset|retryable|outcome)"/;

function line(member, first, number) {
  const key = member.trim().match(/^"[^"]+"/)?.[0];
  const same = number > 1 && first !== null && key !== undefined && members(first.text).includes(member);
  const marked = key !== undefined && interesting.test(key);
  const text = `${member}\n`;
  if (/"duplicate": true/.test(member)) {
    return h("mark", { class: "hit" }, text);
  }
  return marked ? h("span", { class: same ? "same" : "told" }, text) : h("span", { class: "rest" }, text);
}

// The answer, a member a line, each as it was sent.
function members(text) {
  return (layOut(text) ?? text).split("\n");
}
