import { expect, test } from "vitest";
import { startGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";

const LISTER = "a-token-that-lists-sessions";
const READER = "a-token-that-reads-sessions";

test("session.list shows words only to a token that can read sessions", async () => {
  const tokens = [
    { name: "lister", token: LISTER, permissions: ["session.list" as const] },
    { name: "reader", token: READER, permissions: ["session.list" as const, "session.get" as const] },
  ];
  await using gateway = await startGateway({ config: { gateway: { rpc: { auth: { tokens } } } } });
  await gateway.rest.call("chat.send", { body: { message: "Where is my order?" } });
  const previews = async (token: string) => {
    const { result } = await createRpc(gateway.url, token).call("session.list");
    return (result as { sessions: { preview: string | null }[] }).sessions.map(({ preview }) => preview);
  };
  expect(await previews(LISTER)).toEqual([null]);
  expect(await previews(READER)).toEqual(["Where is my order?"]);
});
