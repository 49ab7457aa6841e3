import { describe, expect, expectTypeOf, test, vi } from "vitest";
import { Gateway, GatewayError } from "#generated/clients/typescript/src/index.ts";
import { RestClient } from "#generated/clients/typescript/src/rest.ts";
import { RpcClient } from "#generated/clients/typescript/src/rpc.ts";
import { problem, turnId } from "./answers.ts";
import { serve } from "./serve.ts";
import { answering, failureOf } from "./typescript-client.ts";

describe("a mistake is reported", () => {
  test("a url without a scheme", () => {
    expect(() => new Gateway({ url: "gateway.test:18789" })).toThrow("such as http://gateway.test:18789.");
    expect(() => new Gateway({ url: "ws://gateway.test" })).toThrow("such as http://gateway.test.");
    expect(() => new Gateway({ url: "http://" })).toThrow("is not a url");
  });

  test("an address where nothing listens, with host and port", async () => {
    const server = await serve(async () => {});
    await server[Symbol.asyncDispose]();
    const client = new Gateway({ url: server.url, key: "secret", maxRetries: 0 });
    const { host } = new URL(server.url);
    const error = await failureOf(client.skills.list());
    expect(error.message).toBe(
      `skills.list: Nothing answers at ${host} (ECONNREFUSED). Is the gateway running, and is the address right?`,
    );
  });

  test("a token that is missing, with the option and the variable", async () => {
    for (const name of ["REST_API_KEY", "RPC_TOKEN", "WEBHOOK_TOKEN"]) vi.stubEnv(name, "");
    const words = "This call needs a REST key. Pass `key` to the client, or set REST_API_KEY.";
    for (const options of [{ rpcToken: "rpc" }, { anonymous: true }]) {
      const error = await failureOf(new Gateway({ url: "http://gateway.test", ...options }).skills.list());
      expect(error).toMatchObject({ name: "no-token", message: `skills.list: ${words}` });
    }
    for (const make of [
      () => new Gateway({ key: undefined }),
      () => new RpcClient(),
      () => new RestClient({ key: "" }),
    ])
      expect(make).toThrow(/^The client has no token\. Pass `key`, .* takes `anonymous: true`\.$/);
    vi.unstubAllEnvs();
  });

  test("a token that HTTP cannot carry, without showing it", () => {
    for (const key of ["s3cret\n", " s3cret", "s3\rcret"]) {
      expect(() => new Gateway({ key })).toThrow(/^`key` holds a control character/);
      expect(() => new Gateway({ key })).not.toThrow(/s3/);
    }
  });

  test("an unknown option of the client, and options that are not an object", () => {
    const names =
      "url, key, rpcToken, webhookToken, webhookPath, timeoutMs, maxRetries, headers, anonymous, fetch, WebSocket and reconnect";
    for (const option of ["apiKey", "baseUrl", "Url", "toString", "__proto__x"])
      expect(() => new Gateway({ key: "secret", [option]: "x" } as never)).toThrow(
        new TypeError(`The client has no option \`${option}\`. Its options are ${names}.`),
      );
    expect(() => new RpcClient({ rpcToken: "t", token: undefined } as never)).toThrow(
      "The client has no option `token`.",
    );
    expect(() => new RestClient({ key: "t", reconnect: { attempt: 1 } } as never)).toThrow(
      "`reconnect` of the client has no option `attempt`. Its options are attempts, minMs, maxMs and onPause.",
    );
    for (const options of ["http://127.0.0.1:18789", null, ["x"], 7])
      expect(() => new Gateway(options as never)).toThrow(
        new TypeError(`The client takes an object with the options ${names}.`),
      );
  });

  test("an unknown option, or one in the wrong place", async () => {
    await using server = await answering([]);
    const { turns, chat, skills, rpc } = server.client;
    const later = { lastEventId: "e1" } as never;
    expect(() => turns.events(turnId, later)).toThrow(
      "turns.events has no `lastEventId`. It takes `after`, the id of the event after which the stream begins.",
    );
    expect(() => turns.events(turnId, {}, later)).toThrow(
      "turns.events has no option `lastEventId`. Its options are signal,",
    );
    expect(() => turns.list({ signal: AbortSignal.abort() } as never)).toThrow(
      "Options are the argument after the query.",
    );
    expect(() => chat.send({ message: "x" }, { timeout: 1 } as never)).toThrow("headers, idempotencyKey.");
    expect(() => skills.list({ idempotencyKey: "k" } as never)).toThrow("skills.list has no option `idempotencyKey`.");
    expect(() => rpc.agent.list({}, later)).toThrow("rpc.agent.list has no option `lastEventId`.");
    expect(server.seen).toEqual([]);
  });

  test("an error is checked by its name, and its type is narrowed", async () => {
    await using server = await answering([problem("turn-not-found", 404)]);
    const error: unknown = await failureOf(server.client.turns.get(turnId));
    expect(GatewayError.is(error, "turn-not-found")).toBe(true);
    expect(GatewayError.is(error, "agent-not-found", "turn-not-found")).toBe(true);
    expect(GatewayError.is(error, "agent-not-found")).toBe(false);
    expect(GatewayError.is(new Error("turn-not-found"), "turn-not-found")).toBe(false);
    if (GatewayError.is(error, "turn-not-found")) expectTypeOf(error.name).toEqualTypeOf<"turn-not-found">();
  });
});
