import { expect, test, vi } from "vitest";
import { faultsOf } from "#test/harness/contract.ts";
import { SECRETS, shareGateway } from "#test/harness/gateway.ts";
import { noteChecked } from "#test/harness/ledger.ts";

// Trap: express-openapi-validator checks only replies of res.json, which ours are not. An invalid answer of a handler must be found at the client.

vi.mock("#handlers/rest/table.ts", () => ({
  restHandlers: () => ({ "skills.list": async () => ({ skills: [{ skill_id: 7 }], invalid: [], surprise: true }) }),
}));
const gateway = await shareGateway();

test("a reply that does not match the contract leaves the gateway, and the client reports it", async () => {
  const response = await fetch(`${gateway.url}/api/v1/skills/list`, {
    headers: { authorization: `Bearer ${SECRETS.key}` },
  });
  const { status, headers } = response;
  noteChecked(headers.get("x-request-id") as string);
  expect(status).toBe(200);
  const faults = faultsOf(
    { method: "GET", path: "/api/v1/skills/list" },
    { status, headers, body: await response.text() },
  );
  expect(faults.join("\n")).toContain("must NOT have additional properties");
});
