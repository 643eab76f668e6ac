// The script that every generated client runs, here with openapi-fetch over the types
// that openapi-typescript makes: tsc checks that all of them are there.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./oncelog.js";

type Problem = components["schemas"]["Problem"];
type Batch = components["schemas"]["AppendRequest"];

const [, , baseUrl, topic, token] = process.argv;
assert(baseUrl && topic && token, "usage: script URL TOPIC TOKEN");

// The media types are named because reads and appends know others as well.
const connect = (headers: Record<string, string>) =>
  createClient<paths, "application/json" | "application/problem+json">({ baseUrl, headers });
const client = connect({ Authorization: `Bearer ${token}` });

/** The data of an answer, which must not be a problem. */
function ok<T>(answer: { data?: T; error?: Problem }): T {
  assert(answer.data !== undefined, answer.error?.detail ?? "no data");
  return answer.data;
}

/** The problem of an answer, which must be one. */
function problem(answer: { data?: unknown; error?: Problem }): Problem {
  assert(answer.error !== undefined, "a problem was expected");
  return answer.error;
}

const stranger = problem(await connect({}).POST("/topics", { body: { name: topic } }));
assert.equal(stranger.code, "unauthenticated");

const path = { topic, partition: 0 };
const created = ok(await client.POST("/topics", { body: { name: topic, partitions: 1 } }));
assert.equal(created.name, topic);

const producer = ok(await client.POST("/producers"));

const batch: Batch = {
  pid: producer.pid,
  epoch: producer.epoch,
  baseSeq: 0,
  records: [
    { key: "a", value: { n: 1 }, headers: [{ name: "trace", value: "1" }] },
    { valueText: "two", timestamp: "2026-01-02T03:04:05.678Z" },
  ],
};
const append = (body: Batch) =>
  client.POST("/topics/{topic}/partitions/{partition}/batches", {
    params: { path, header: { Prefer: "wait=0" } },
    body,
  });

const first = ok(await append(batch));
assert.equal(first.duplicate, false);
assert.equal(first.baseOffset, 0);
assert.equal(first.lastOffset, 1);
assert.equal(first.nextSeq, 2);

const again = ok(await append(batch));
assert.deepEqual(again, { ...first, duplicate: true });

const gap = problem(await append({ ...batch, baseSeq: 5 }));
const code: Problem["code"] = "out-of-order-sequence";
assert.equal(gap.code, code);
assert.equal(gap.status, 409);
assert.equal(gap.retryable, true);
assert.equal(gap.outcome satisfies "not-applied" | "applied" | "unknown", "not-applied");
const expected: number | undefined = gap.expectedSeq;
assert.equal(expected, 2);

const read = ok(
  await client.GET("/topics/{topic}/partitions/{partition}/records", {
    params: { path, query: { offset: "earliest", limit: 10 } },
  }),
);
assert.equal(read.highWatermark, 2);
assert.deepEqual(
  read.records.map((r) => r.value ?? r.valueText),
  [{ n: 1 }, "two"],
);
assert.deepEqual(read.records[0]?.headers, [{ name: "trace", value: "1" }]);

const producers = ok(
  await client.GET("/topics/{topic}/partitions/{partition}/producers", { params: { path } }),
);
assert.deepEqual(
  producers.items.map((p) => [p.pid, p.lastSeq, p.counters.accepted, p.counters.duplicate, p.counters.outOfOrder]),
  [[producer.pid, 1, 1, 1, 1]],
);
assert(ok(await client.GET("/producers")).items.some((p) => p.pid === producer.pid));

const taken = ok(await client.POST("/snapshots", { body: { topic, partition: 0 } }));
const snapshot = taken.items[0];
assert(snapshot);
assert.equal(snapshot.reason satisfies "roll" | "shutdown" | "request" | "startup", "request");
const verified = ok(
  await client.POST("/snapshots/{topic}/{partition}/{offset}/verify", {
    params: { path: { ...path, offset: snapshot.offset } },
  }),
);
assert.deepEqual(verified, { match: true, differences: [] });

const deleted = await client.DELETE("/topics/{topic}", { params: { path: { topic } } });
assert.equal(deleted.response.status, 204);
const gone = problem(await client.GET("/topics/{topic}", { params: { path: { topic } } }));
assert.equal(gone.code, "unknown-topic");

console.log("typescript: all steps done");
