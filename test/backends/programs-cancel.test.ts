import { it } from "vitest";
import { gatewayWith, sendToDeaf } from "./programs-agents.ts";
import { untilGone } from "./stand-ins/programs.ts";

it("ends a program when its turn is cancelled", async () => {
  await using gateway = await gatewayWith(["waiting"]);
  const { pids, turnId } = await sendToDeaf(gateway, "waiting");
  await gateway.rest.call("turns.cancel", { path: { turn_id: turnId } });
  await untilGone(pids);
});

it("tells a coding agent when its turn is cancelled", async () => {
  await using gateway = await gatewayWith(["coder"]);
  const { turnId } = await sendToDeaf(gateway, "coder", "do: obey");
  await gateway.rest.call("turns.cancel", { path: { turn_id: turnId } });
  await gateway.logged("program.said", { line: "cancelled" });
});
