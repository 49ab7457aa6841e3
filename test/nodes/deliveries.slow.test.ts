import { expect, it } from "vitest";
import type { Pushes } from "#generated/push-types.ts";
import { postgresTests } from "#test/harness/postgres.ts";
import { openSocket } from "../wire/ws/socket.ts";
import { startNodes, type TestNode } from "./nodes.ts";

await postgresTests((server) => {
  it("deliveries are pushed over the WebSocket of any gateway, whichever recorded or ran them", async () => {
    await using nodes = await startNodes(server, 2);
    const [here, there] = nodes.all as [TestNode, TestNode];
    using socket = await openSocket(here);
    await socket.call("rpc.subscribe", { gateway: null, deliveries: true });
    const shown = (is: (delivery: Pushes["delivery.recorded"]["delivery"]) => boolean) =>
      socket.until(() =>
        [...socket.pushesOf("delivery.recorded"), ...socket.pushesOf("delivery.changed")].find(({ delivery }) =>
          is(delivery),
        ),
      );

    const { turnId } = (await there.rpc.call("agent.sendMessage", { agentName: "live", message: "x" }))
      .result as unknown as { turnId: string };
    const played = await Promise.race([here.next(), there.next()]);
    await shown((one) => one.turnId === turnId && one.outcome === "running");
    played.end();
    await shown((one) => one.turnId === turnId && one.outcome === "completed");

    const woken = await there.hooks.wake({ text: "the disk is full", mode: "now" });
    await shown((one) => one.eventId === woken.json.eventId && one.outcome === "handled");

    await there.hooks.agent({ message: "hi" }, { token: null });
    await shown(({ outcome }) => outcome === "refused");

    for (let n = 0; n < 100; n++) await nodes.at(n).hooks.mapped({ n });
    await socket.until(
      () =>
        socket.pushesOf("delivery.recorded").filter(({ delivery }) => delivery.outcome === "unmatched").length >= 100,
    );
    const ids = socket.pushesOf("delivery.recorded").map(({ delivery }) => delivery.deliveryId);
    expect(new Set(ids).size).toBe(ids.length);
  });
});
