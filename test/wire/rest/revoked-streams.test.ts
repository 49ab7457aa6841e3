import { describe, expect, onTestFinished, test } from "vitest";
import { createPuppet } from "#test/harness/backends.ts";
import { SECRETS, type SomeConfig, startGateway } from "#test/harness/gateway.ts";
import { openConnection, requestText } from "#test/harness/raw.ts";

async function start(config: SomeConfig = {}) {
  const puppet = createPuppet();
  const gateway = await startGateway({ config, makeBackend: () => puppet.backend });
  const place = { method: "POST", path: "/api/v1/chat/send" };
  /** A reply that is being written, as a reader with this key gets it, byte by byte. */
  const follow = async (key: string) => {
    const connection = await openConnection(gateway.url);
    onTestFinished(() => void connection.socket.destroy());
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    connection.write(requestText(place, headers, JSON.stringify({ message: "hi", stream: true })));
    await connection.head(place);
    const turn = await puppet.next();
    turn.say("one");
    await connection.until((text) => text.includes('"text":"one"'));
    const rest = async (): Promise<string> => {
      const text = await connection.until((all) => all.endsWith(LAST_CHUNK));
      return text.slice(text.indexOf('"text":"one"'));
    };
    return { turn, turnId: turn.turn.turnId, rest };
  };
  return { gateway, follow };
}

const LAST_CHUNK = "0\r\n\r\n";
const SPARE = "another-key-of-the-tests";
function keysOf(...keys: readonly string[]): SomeConfig {
  return {
    gateway: { rest: { auth: { keys: keys.map((key, n) => ({ name: `k${n}`, key })) } } },
  };
}

describe("a stream of events ends", () => {
  test("when its key expires", async () => {
    const { gateway, follow } = await start();
    await using _ = gateway;
    const expires_at = new Date(Date.now() + 4_000).toISOString();
    const { json } = await gateway.console.call("keys.create", { body: { name: "soon over", expires_at } });
    const { rest, turn } = await follow(String(json.key));
    expect(await rest()).not.toContain("event:");
    turn.end();
  });

  test("when its key is revoked, and streams of other keys and its turn continue", async () => {
    const { gateway, follow } = await start();
    await using _ = gateway;
    const { json } = await gateway.console.call("keys.create", { body: { name: "soon gone" } });
    const [revoked, kept] = [await follow(String(json.key)), await follow(gateway.key)];
    await gateway.console.call("keys.revoke", { path: { key_id: String(json.key_id) } });
    expect(await revoked.rest()).not.toContain("event:");
    revoked.turn.say("two");
    revoked.turn.end();
    kept.turn.say("two");
    kept.turn.end();
    expect(await kept.rest()).toMatch(/event: message.delta.*event: message.completed.*event: turn.completed/s);
    const resumed = await gateway.rest.stream("turns.events", { path: { turn_id: revoked.turnId } });
    expect((await resumed.all()).at(-1)?.event).toBe("turn.completed");
  });

  test("when a reload removes its key, and continues when it does not", async () => {
    const { gateway, follow } = await start(keysOf(SECRETS.key, SPARE));
    await using _ = gateway;
    const [gone, kept] = [await follow(SPARE), await follow(SECRETS.key)];
    await gateway.reload(keysOf(SECRETS.key));
    expect(await gone.rest()).not.toContain("event:");
    kept.turn.end();
    expect(await kept.rest()).toContain("event: turn.completed");
    gone.turn.end();
  });

  test("when a reload changes the console's token", async () => {
    const { gateway, follow } = await start();
    await using _ = gateway;
    const gone = await follow(gateway.consoleToken);
    await gateway.reload({ gateway: { console: { token: "a-new-token-of-the-console" } } });
    expect(await gone.rest()).not.toContain("event:");
    gone.turn.end();
  });

  test("when a reload closes REST", async () => {
    const { gateway, follow } = await start();
    await using _ = gateway;
    const gone = await follow(gateway.key);
    await gateway.reload({ gateway: { rest: { enabled: false } } });
    expect(await gone.rest()).not.toContain("event:");
    gone.turn.end();
  });
});
