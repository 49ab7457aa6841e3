import { expect, test } from "vitest";
import { buildServer } from "./builds.ts";

test("a program is not built when what is to be replaced in it is not there", async () => {
  const instead = { "src/wire/call/delivery.ts": "test/bench/servers/no-delivery.ts" };
  await expect(buildServer("bare-http", instead)).rejects.toThrow("src/wire/call/delivery.ts is not in this program");
});
