import { expect, it } from "vitest";
import { leastOf, timeOf } from "#test/harness/loop.ts";
import { gatewayWith, sendToDeaf } from "./programs-agents.ts";
import { untilGone } from "./stand-ins/programs.ts";

it("a gateway reaches a program with a cancel within 100 ms", async () => {
  await using gateway = await gatewayWith(["waiting", "coder"]);
  const waiting = async () => {
    const { pids, turnId } = await sendToDeaf(gateway, "waiting");
    return await timeOf(async () => {
      await gateway.rest.call("turns.cancel", { path: { turn_id: turnId } });
      await untilGone(pids);
    });
  };
  expect(await leastOf(15, 100, waiting)).toBeLessThan(100);
  let told = 0;
  const coder = async () => {
    const { turnId } = await sendToDeaf(gateway, "coder", "do: obey");
    told++;
    return await timeOf(async () => {
      await gateway.rest.call("turns.cancel", { path: { turn_id: turnId } });
      await gateway.until(() => gateway.linesOf("program.said", { line: "cancelled" })[told - 1]);
    });
  };
  expect(await leastOf(15, 100, coder)).toBeLessThan(100);
});
