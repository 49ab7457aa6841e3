import { afterAll, describe, expect, test } from "vitest";
import { SECRETS, shareGateway, startGateway } from "#test/harness/gateway.ts";
import { exchange } from "#test/harness/raw.ts";
import { senders } from "#test/harness/senders.ts";
import { LARGE_HOOK_BODIES } from "#test/wire/call/large-bodies.ts";

// F12 and F13: hostile requests to the webhooks.

const secret = senders.github.makeSecret("first");
const mappings = {
  signed: { match: { "body.a.b.0.c": "x" }, message: "{body.it}", verify: { type: "github", secret } },
  any: { match: {}, message: "got {body.it} {body.toString.name} {headers.valueOf}" },
} as const;
const gateway = await shareGateway({ config: { webhooks: { mappings } } });
function ownKeys() {
  return [Object, Array, String, Function].flatMap(({ prototype }) => Reflect.ownKeys(prototype));
}
const before = ownKeys();
afterAll(() => expect(ownKeys()).toEqual(before));

const WAKE = { method: "POST", path: "/hooks/wake" };
const headers = { authorization: `Bearer ${SECRETS.webhookToken}`, "content-type": "application/json" };
const KIB = 1024;
const MOST = 256 * KIB;

function metadataOf(json: string | Buffer) {
  return Buffer.concat([Buffer.from('{"text":"x","metadata":{"it":'), Buffer.from(json), Buffer.from("}}")]);
}
async function kept(eventId: unknown) {
  const { json } = await gateway.console.call("events.get", { path: { event_id: String(eventId) } });
  return (json.metadata as { it: unknown }).it;
}

describe("F13: valid JSON", () => {
  const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;

  test("is read up to 64 levels deep", async () => {
    expect((await gateway.hooks.mapped(nested(64))).status).toBe(200);
    for (const depth of [65, 1_000, 100_000])
      expect((await gateway.hooks.mapped(nested(depth))).problem.detail).toBe(
        "The body is nested deeper than 64 levels.",
      );
  });

  test("may have at most 10 000 values", async () => {
    expect((await gateway.hooks.mapped(`[${"1,".repeat(9_900)}1]`)).status).toBe(200);
    expect((await gateway.hooks.mapped(`[${"1,".repeat(10_000)}1]`)).error).toBe("invalid-request");
  });

  test.each(["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "__defineGetter__"])(
    "does not change a prototype by the key %s",
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

  test("is filled in once, without properties that are not its own", async () => {
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

  test("at the limit is accepted, and one byte more is not", async () => {
    expect((await gateway.hooks.wake(textOf(MOST))).status).toBe(200);
    const { error, problem } = await gateway.hooks.wake(textOf(MOST + 1));
    expect(error).toBe("too-large");
    expect(problem.detail).toContain(String(MOST));
  });

  test("may have another limit, which a reload changes at once", async () => {
    await using small = await startGateway({ config: { limits: { webhookBody: 64 } } });
    expect((await small.hooks.wake(textOf(64))).status).toBe(200);
    expect((await small.hooks.wake(textOf(65))).error).toBe("too-large");
    await small.reload({ limits: { webhookBody: 128 } });
    expect((await small.hooks.wake(textOf(65))).status).toBe(200);
  });
});

test("the gateway continues normally", async () => {
  expect((await gateway.hooks.wake({ text: "hi" })).status).toBe(200);
  expect(gateway.linesOf("unexpected.error")).toEqual([]);
});
