import { IncomingMessage, ServerResponse } from "node:http";
import { expect, test, vi } from "vitest";
import { startGateway } from "#test/harness/gateway.ts";

// Trap: Express sets the prototypes of req and res on every request, which makes their objects slow. Ours are created with its prototypes; Express
// never gets the real ones.

test("no request changes its prototype on its way through Express", async () => {
  await using gateway = await startGateway();
  const kept: boolean[] = [];
  const setPrototypeOf = Object.setPrototypeOf;
  using _ = vi.spyOn(Object, "setPrototypeOf").mockImplementation((object, prototype) => {
    if (object instanceof IncomingMessage || object instanceof ServerResponse)
      kept.push(Object.getPrototypeOf(object) === prototype);
    return setPrototypeOf(object, prototype);
  });
  for (let n = 0; n < 3; n++) await gateway.rest.call("skills.list");
  expect(kept.length).toBeGreaterThanOrEqual(3 * 2);
  expect(kept).not.toContain(false);
});
