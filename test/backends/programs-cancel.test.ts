import { it } from "vitest";
import { gatewayWith, sendToDeaf } from "./programs-agents.ts";

it("notifies a coding agent when its turn is cancelled", async () => {
  await using gateway = await gatewayWith(["coder"]);
  const { turnId } = await sendToDeaf(gateway, "coder", "do: obey");
  await gateway.rest.call("turns.cancel", { path: { turn_id: turnId } });
  await gateway.logged("program.said", { line: "cancelled" });
});
