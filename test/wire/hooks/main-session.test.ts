import { expect, it } from "vitest";
import type { Store } from "#store/store.ts";
import { startGateway } from "#test/harness/gateway.ts";
import { openSocket } from "#test/wire/ws/socket.ts";

const MAIN = "agent:main:main";

it("an agent's main session with many wakes is compacted automatically, and its old entries are erased", async () => {
  let store: Store | undefined;
  await using gateway = await startGateway({
    config: {
      agents: { main: { backend: "echo", heartbeat: { every: "off" } } },
      sessions: { compactAt: 2_000, retention: "2s", eventRetention: "2s" },
    },
    wrapStore: (given) => {
      store = given;
      return given;
    },
  });
  using socket = await openSocket(gateway);
  await socket.call("rpc.subscribe", { gateway: null, agents: ["main"] });
  const turnIds: string[] = [];
  let most = 0;
  const wake = async (text: string) => {
    const { json } = await gateway.hooks.wake({ text: `${text} ${"x".repeat(500)}`, mode: "now" });
    turnIds.push((await socket.pushed("event.handled", ({ eventId }) => eventId === json.eventId)).turnId);
    const session = await store?.getSession(MAIN);
    most = Math.max(most, session?.contextBytes ?? 0);
    return session;
  };
  let session = await wake("0");
  const compactions = () => socket.pushesOf("session.compacted").length;
  while (session?.firstSeq === 1 || compactions() < 3) session = await wake(`${turnIds.length}`);
  expect(most).toBeLessThan(4 * 2 * 2_000);
  expect(session).toMatchObject({ messageCount: 2 * turnIds.length });
  expect(await store?.getTurn(turnIds[0] as string)).toBeUndefined();
  expect(await store?.getTurn(turnIds.at(-1) as string)).toMatchObject({ status: "completed" });
  const { messages } = await socket.call<{ messages: { text: string }[] }>("session.get", { sessionId: MAIN });
  expect(messages[0]?.text).toContain(`${turnIds.length - 1} xxx`);
});
