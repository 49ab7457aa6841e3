import { expect } from "vitest";
import { type Answer, answerServer, cut, event, events, json, keysOf, problem, soon, turnId } from "./answers.ts";

/** A call, independent of a programming language. */
export type Call = {
  /** An operation, such as `chat.send`, or a method, such as `rpc.agent.list`. */
  call: string;
  /** The parts of its path. */
  path?: readonly string[];
  fields?: Record<string, unknown>;
  /** Reads all events, the text of a reply, or the items of every page. */
  read?: "events" | "text" | "items";
};

/** A client calls, a server answers one request after the other. Each client must show the same outcomes, and send the same requests. */
type Scene = {
  title: string;
  /** The client's number of retries; undefined for its default. */
  retries?: number;
  answers: readonly Answer[] | ((elsewhere: string) => readonly Answer[]);
  calls: readonly Call[];
  /** The outcome of each call: `answered` or the fields of its error, and the items in `read`. */
  outcomes: readonly object[];
  /** The requests. Their number is checked in each scene. */
  seen?: readonly object[];
  requests?: number;
  /** The requests that share an idempotency key, key by key. */
  keys?: readonly number[];
};

const send: Call = { call: "chat.send", fields: { message: "hi" } };
const stream: Call = { call: "chat.stream", fields: { message: "hi" }, read: "events" };
const list: Call = { call: "turns.list", read: "items" };
const createKey: Call = { call: "keys.create", fields: { name: "ci" } };
const done = json(200, { status: "completed", reply: "hi" });
const running = json(202, { status: "running", turn_id: turnId });
const proxy: Answer = (res) => res.writeHead(502, { "content-type": "text/html", "retry-after": "0" }).end("<html>");
const started = event("turn.started", "1");
const completed = event("turn.completed", "3");

function delta(id: string, offset: number, text: string) {
  return event("message.delta", id, { offset, text });
}
function page(turns: unknown[], next_cursor: unknown) {
  return json(200, { turns, next_cursor });
}
function lostAfter(retried: string, fault: Answer): Scene {
  return {
    title: `tries again after ${retried}, with the same key`,
    answers: [fault, done],
    calls: [send],
    outcomes: [{ answered: { reply: "hi" } }],
    requests: 2,
    keys: [2],
  };
}
const eventsAt = `/api/v1/turns/${turnId}/events`;
const notAGateway = { name: "not-a-gateway" };

export const scenes: readonly Scene[] = [
  lostAfter("a lost connection", cut),
  lostAfter("the 502 of a proxy", proxy),
  ...[408, 429, 500, 503].map((status) => lostAfter(`a ${status}`, problem("rate-limited", status, soon))),
  {
    title: "tries again after a 409 while the first call is being stored, and after no other 409",
    answers: [problem("idempotency-in-progress", 409, soon), done, problem("session-conflict", 409, soon)],
    calls: [send, send],
    outcomes: [{ answered: {} }, { name: "session-conflict", status: 409, detail: "Because.", request_id: "req_1" }],
    requests: 3,
    keys: [2, 1],
  },
  {
    title: "makes at most two more attempts, and the error has the key of the call",
    answers: [1, 2, 3].map(() => problem("gateway-busy", 503, soon)),
    calls: [send],
    outcomes: [{ name: "gateway-busy", status: 503, retry_after: 0.001, request_id: "req_1", operation: "chat.send" }],
    requests: 3,
    keys: [3],
  },
  {
    title: "makes one attempt without retries",
    retries: 0,
    answers: [cut],
    calls: [send],
    outcomes: [{ name: "connection-failed", operation: "chat.send" }],
    requests: 1,
    keys: [1],
  },
  {
    title: "does not repeat a refused call or a call whose turn has ended",
    answers: [problem("skill-not-found", 404), problem("turn-failed", 502, { turn_id: turnId })],
    calls: [send, send],
    outcomes: [
      { name: "skill-not-found", status: 404 },
      { name: "turn-failed", turn_id: turnId, text: "chat.send: Because." },
    ],
    requests: 2,
  },
  {
    title: "leaves it to the caller to wait for more than a minute",
    answers: [problem("rate-limited", 429, { retry_after_ms: 61_000 })],
    calls: [{ call: "skills.list" }],
    outcomes: [{ name: "rate-limited", retry_after: 61 }],
    requests: 1,
  },
  {
    title: "repeats a call that is not idempotent only if the call had no effect",
    answers: [problem("rate-limited", 429, soon), cut, problem("internal", 500)],
    calls: [createKey, createKey],
    outcomes: [{ name: "connection-failed" }, { name: "internal" }],
    requests: 3,
  },
  {
    title: "asks again with its key until the turn has ended",
    answers: [running, running, done],
    calls: [send],
    outcomes: [{ answered: { reply: "hi" } }],
    seen: [1, 2, 3].map(() => ({ body: { message: "hi" } })),
    keys: [3],
  },
  {
    title: "asks the gateway not to wait when it starts a turn",
    answers: [json(202, { status: "queued", turn_id: turnId })],
    calls: [{ call: "skills.start", fields: { skill_id: "s" } }],
    outcomes: [{ answered: { turn_id: turnId } }],
    seen: [{ body: { skill_id: "s", wait: false } }],
  },
  {
    title: "returns the states of the parts of a gateway that is not ready",
    answers: [json(503, { ready: false, parts: { store: { ok: false, detail: "gone" } } })],
    calls: [{ call: "ops.readyz" }],
    outcomes: [{ answered: { ready: false, parts: { store: { ok: false, detail: "gone" } } } }],
    requests: 1,
  },
  {
    title: "reads all pages, including those after an empty one",
    answers: [page([{ n: 1 }, { n: 2 }], "c1"), page([], "c2"), page([{ n: 3 }], null)],
    calls: [{ ...list, fields: { status: "failed" } }],
    outcomes: [{ read: [{ n: 1 }, { n: 2 }, { n: 3 }] }],
    seen: ["", "&cursor=c1", "&cursor=c2"].map((more) => ({ url: `/api/v1/turns?status=failed${more}` })),
  },
  {
    title: "ends a list that repeats a cursor, whose cursors form a cycle, or whose cursor is not text",
    answers: [page([1], "a"), page([1], "a"), ...["a", "b", "a"].map((next) => page([1], next)), page([], 7)],
    calls: [list, list, list],
    outcomes: [
      { ...notAGateway, read: expect.arrayContaining([1]), detail: expect.stringContaining("it repeats a cursor") },
      { ...notAGateway, detail: expect.stringContaining("it repeats a cursor") },
      { ...notAGateway, detail: "The `next_cursor` of the answer is not text. Is this a gateway?" },
    ],
    requests: 6,
  },
  {
    title: "gives each event of a stream, and ends with the turn",
    answers: [events("open", started, ": still here\n\n", delta("2.1", 0, "h"), completed)],
    calls: [stream],
    outcomes: [{ read: ["turn.started 1", "message.delta 2.1", "turn.completed 3"] }],
    seen: [{ body: { message: "hi", stream: true } }],
  },
  {
    title: "resumes a stream after its last event if it was cut off, ended early or was interrupted by a restart",
    answers: [
      events("cut", started, delta("2", 0, "Good "), delta("2", 0, "Good ").slice(0, 20)),
      problem("shutting-down", 503, soon),
      events("end", delta("3", 5, "day 😀")),
      events("end", event("message.completed", "4", { text: "Good day 😀!" }), event("turn.completed", "5")),
    ],
    calls: [{ call: "skills.stream", fields: { skill_id: "s" }, read: "text" }],
    outcomes: [{ read: ["Good ", "day 😀", "!"] }],
    seen: [
      { method: "POST", url: "/api/v1/skills/trigger" },
      ...["2", "2", "3"].map((id) => ({ method: "GET", url: eventsAt, headers: { "last-event-id": id } })),
    ],
  },
  {
    title: "reads the events of a turn from its start, or after an event",
    answers: [events("end", completed), events("end", event("turn.cancelled", "3"))],
    calls: [
      { call: "turns.events", path: [turnId], read: "events" },
      { call: "turns.events", path: [turnId], fields: { after: "2" }, read: "events" },
    ],
    outcomes: [{ read: ["turn.completed 3"] }, { read: ["turn.cancelled 3"] }],
    seen: [
      { url: eventsAt, headers: expect.not.objectContaining({ "last-event-id": expect.anything() }) },
      { url: eventsAt, headers: { "last-event-id": "2" } },
    ],
  },
  {
    title: "fails with the error of a refused stream, and does not retry it",
    answers: [problem("session-conflict", 409), events("cut", started), problem("turn-not-found", 404)],
    calls: [stream, stream],
    outcomes: [{ name: "session-conflict" }, { name: "turn-not-found" }],
    requests: 3,
  },
  {
    title: "fails if the answer is not a stream of events",
    answers: [json(200, { turn_id: turnId })],
    calls: [stream],
    outcomes: [
      {
        ...notAGateway,
        operation: "chat.stream",
        detail: expect.stringContaining("answered application/json in place of a stream of events. Is this a gateway?"),
      },
    ],
    requests: 1,
  },
  {
    title: "fails with the error of the turn after the text of a stream, without text that another attempt repeats",
    answers: [
      events(
        "end",
        started,
        delta("2", 0, "One 😀, "),
        event("turn.started", "3"),
        delta("4", 0, "One 😀, tw"),
        delta("5", 10, "o"),
        event("turn.failed", "6", { error: { name: "turn-timeout", title: "Turn timeout", detail: "Too late." } }),
      ),
      events("end", event("turn.cancelled", "4")),
    ],
    calls: [
      { ...stream, read: "text" },
      { ...stream, read: "text" },
    ],
    outcomes: [
      { name: "turn-timeout", detail: "Too late.", turn_id: turnId, read: ["One 😀, ", "tw", "o"] },
      { name: "turn-cancelled" },
    ],
    requests: 2,
  },
  {
    title: "accepts only an object as a reply",
    retries: 0,
    answers: [
      ...[null, [1], "x", 7, true].map((body) => json(200, body)),
      json(200, [1]),
      json(200, null),
      json(200, { turns: 7 }),
      (res) => res.writeHead(204).end(),
      (res) => res.writeHead(200, { "content-type": "application/json" }).end('{"a":'),
      (res) => res.writeHead(204).end(),
    ],
    calls: [
      ...Array<Call>(5).fill(send),
      { call: "ops.healthz" },
      list,
      list,
      send,
      send,
      { call: "keys.revoke", path: ["key_1"] },
    ],
    outcomes: [
      ...Array(7).fill({ ...notAGateway, detail: expect.stringMatching(/ in place of .*\. Is this a gateway\?$/) }),
      { ...notAGateway, detail: "The answer has no list `turns`. Is this a gateway?" },
      notAGateway,
      { name: "connection-failed", detail: expect.stringMatching(/ is broken: the reply is not valid JSON\.$/) },
      { answered: null },
    ],
    requests: 11,
  },
  {
    title: "passes on a name that a newer gateway has added, and names a proxy",
    retries: 0,
    answers: [
      problem("from-the-future", 418),
      proxy,
      (res) => res.writeHead(200, { "content-type": "text/html" }).end(),
    ],
    calls: Array<Call>(3).fill({ call: "skills.list" }),
    outcomes: [
      { name: "from-the-future", status: 418, detail: "Because.", request_id: "req_1", text: "skills.list: Because." },
      { name: "http-502", text: expect.stringContaining("Is a proxy in between?") },
      { ...notAGateway, text: expect.stringContaining("answered text/html in place of JSON. Is this a gateway?") },
    ],
    requests: 3,
  },
  {
    title: "does not follow a redirect, and names its target",
    answers: (elsewhere) =>
      Array<Answer>(3).fill((res) => res.writeHead(307, { location: `${elsewhere}/elsewhere` }).end()),
    calls: [{ call: "skills.list" }, stream, { call: "rpc.agent.list" }],
    outcomes: Array(3).fill({
      ...notAGateway,
      detail: expect.stringMatching(/redirects to http:\/\/[\d.:]+\/elsewhere\. Nothing was sent there\./),
    }),
    requests: 3,
  },
];

/** Events that a gateway never sends. */
export const ODD_EVENTS: readonly (readonly [what: string, text: string])[] = [
  ["not JSON", "event: turn.started\nid: 1\ndata: [\n\n"],
  ["without a turn", "event: turn.started\nid: 1\ndata: {}\n\n"],
  ["a list", 'event: turn.started\nid: 1\ndata: ["turn_id"]\n\n'],
  ["of a turn that is not text", event("turn.started", "1", { turn_id: {} })],
  ["of a turn that is another path", event("turn.started", "1", { turn_id: ".." })],
  ["with an id that no header can have", event("turn.started", "€")],
  ["a piece without a text", event("message.delta", "1")],
  ["a piece whose text is a number", event("message.delta", "1", { offset: 0, text: 5 })],
  ["a piece at a place before the first", event("message.delta", "1", { offset: -3, text: "a" })],
  ["a piece at a place that is text", event("message.delta", "1", { offset: "x", text: "a" })],
  ["a reply without a text", event("message.completed", "1", { text: null })],
  ["a failure without an error", event("turn.failed", "1", { error: 7 })],
  ["a failure without a name", event("turn.failed", "1", { error: {} })],
];

/** Makes a call with a client for `url`. */
type Player = (url: string, calls: readonly Call[], retries: number | undefined) => Promise<unknown[]>;

export async function play(scene: Scene, player: Player): Promise<void> {
  await using elsewhere = await answerServer([]);
  const { answers } = scene;
  await using server = await answerServer([...(typeof answers === "function" ? answers(elsewhere.url) : answers)]);
  const outcomes = await player(server.url, scene.calls, scene.retries);
  expect(outcomes).toMatchObject(scene.outcomes);
  const { seen } = server;
  expect(elsewhere.seen).toEqual([]);
  if (scene.seen) expect(seen).toMatchObject(scene.seen);
  expect(seen).toHaveLength(scene.requests ?? scene.seen?.length ?? 0);
  if (!scene.keys) return;
  const counts = new Map<unknown, number>();
  for (const key of keysOf(seen)) counts.set(key, (counts.get(key) ?? 0) + 1);
  expect([...counts.keys()]).not.toContain(undefined);
  expect([...counts.values()]).toEqual(scene.keys);
  // An error has the key of its call, so that a caller can repeat the call manually.
  for (const { name, idempotency_key } of outcomes as { name?: string; idempotency_key?: unknown }[])
    if (name !== undefined) expect([...counts.keys()]).toContain(idempotency_key);
}
