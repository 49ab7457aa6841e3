import { describe, expect, test } from "vitest";
import { createPuppet } from "#test/harness/backends.ts";
import { SECRETS, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { createRest } from "#test/harness/rest.ts";
import { createRpc } from "#test/harness/rpc.ts";

const SECRET = SECRETS.rpcToken;

/** The previews that lists show of the newest turn, its session and its delivery. */
async function previewsOf({ url, console }: TestGateway): Promise<unknown[]> {
  const { turns } = (await console.call("turns.list")).json as { turns: Record<string, unknown>[] };
  const one = (await console.call("turns.get", { path: { turn_id: String(turns[0]?.turn_id) } })).json;
  const { deliveries } = (await console.call("deliveries.list")).json as { deliveries: Record<string, unknown>[] };
  const { result } = await createRpc(url).call("session.list");
  const { sessions } = result as { sessions: Record<string, unknown>[] };
  const { session } = (await createRpc(url).call("session.get", { sessionId: turns[0]?.session_id })).result as {
    session: Record<string, unknown>;
  };
  return [
    ...[turns[0], one, deliveries[0]].flatMap((row) => [row?.preview, row?.reply_preview]),
    sessions[0]?.preview,
    session.preview,
  ];
}

describe("a value of the configuration in a message", () => {
  test.each([
    ["whole", `The token is ${SECRET} .`, "The token is [hidden] ."],
    ["cut off by the end of the preview", `${"x".repeat(110)} ${SECRET}`, `${"x".repeat(110)} [hidden]`],
    ["cut off behind much white space", `The token is${" ".repeat(460)}${SECRET}`, "The token is"],
    ["missing, although a word starts like it", `No ${SECRET.slice(0, 7)}`, `No ${SECRET.slice(0, 7)}`],
    [
      "behind many marks",
      `${"… ".repeat(50)}${"x".repeat(10)} ${SECRET}`,
      `${"… ".repeat(50)}${"x".repeat(10)} [hidden]`,
    ],
  ])("is hidden in all previews: %s", async (_, message, preview) => {
    await using gateway = await startGateway({ hidden: [SECRET] });
    await gateway.rest.call("chat.send", { body: { message } });
    expect(await previewsOf(gateway)).toEqual(Array(8).fill(preview));
  });

  test("changes no id", async () => {
    await using gateway = await startGateway({ hidden: [SECRET] });
    const user_id = "rpc-token-of";
    const { json } = await gateway.rest.call("chat.send", { body: { message: "hi", user_id } });
    const { turns } = (await gateway.console.call("turns.list")).json as { turns: Record<string, unknown>[] };
    expect(turns[0]).toMatchObject({ session_id: json.session_id, turn_id: json.turn_id, caller: "tests" });
  });
});

test("a key with only the scope chat reads a turn without its message, its caller and the failure of its announcement", async () => {
  const channels = {
    ops: { type: "webhook", url: "http://127.0.0.1:9/none", secret: "a-secret-of-a-channel" },
  } as const;
  await using gateway = await startGateway({ config: { channels } });
  const { json } = await gateway.hooks.agent({ message: "private", delivery: "announce", channel: "ops" });
  const path = { turn_id: String(json.turnId) };
  await gateway.logged("turn.ended", { turnId: json.turnId });
  const admin = createRest(gateway.url, SECRETS.adminKey);
  const read = async (client: TestGateway["rest"]) => (await client.call("turns.get", { path })).json;
  await expect.poll(async () => (await read(admin)).announcement).toMatchObject({ reason: expect.any(String) });
  const known = { turn_id: json.turnId, reply: "private", reply_preview: "private" };
  expect(await read(admin)).toMatchObject({ ...known, preview: "private", caller: "shared" });
  const announcement = { channel: "ops", reason: null };
  expect(await read(gateway.rest)).toMatchObject({ ...known, preview: null, caller: null, announcement });
});

test("a key with only the scope chat cancels a turn and does not get its message", async () => {
  const puppet = createPuppet();
  await using gateway = await startGateway({ makeBackend: () => puppet.backend });
  const { json } = await gateway.hooks.agent({ message: "private" });
  await puppet.next();
  const { status, json: cancelled } = await gateway.rest.call("turns.cancel", {
    path: { turn_id: String(json.turnId) },
  });
  expect([status, cancelled]).toMatchObject([200, { status: "cancelled", preview: null, caller: null }]);
});
