import { describe, expect, test } from "vitest";
import { SECRETS, startGateway } from "#test/harness/gateway.ts";
import { transports } from "#test/harness/rpc.ts";
import { expectReply, type Kept, readFixtures, textToSend } from "#test/harness/rpc-fixtures.ts";
import { exampleMethods, SECRET_CAUSE } from "#test/harness/rpc-table.ts";

// Every fixture, on every transport. Results are validated against the contract's schema of their method.

/** The tokens of `>>name`: the one with all permissions, and the read-only one of the interface document. */
const TOKENS = { ops: SECRETS.rpcToken, dashboard: "dashboard-token-of-the-tests" };
const READ_ONLY = ["agent.list", "session.list", "system.health"];
const rpc = {
  auth: {
    tokens: [
      { name: "ops", token: TOKENS.ops, permissions: ["*"] },
      { name: "dashboard", token: TOKENS.dashboard, permissions: READ_ONLY },
    ],
  },
};

for (const [transport, { open, config: ofWay }] of Object.entries(transports)) {
  for (const { name, config, fixtures } of readFixtures()) {
    describe(`${transport}: ${name}`, async () => {
      const gateway = await startGateway({
        config: { ...config, gateway: { ...config.gateway, ...ofWay?.gateway, rpc } },
        extraMethods: exampleMethods,
      });
      const opened = new Map<string, ReturnType<typeof open>>();
      const transportOf = (token: string) => {
        const known = opened.get(token) ?? open(gateway, TOKENS[token as keyof typeof TOKENS]);
        opened.set(token, known);
        return known;
      };
      const kept: Kept = new Map();

      test.each(fixtures)("$title", async (fixture) => {
        const { send } = await transportOf(fixture.token);
        const { status, text } = await send(textToSend(fixture, kept));
        expectReply(fixture, text, kept);
        if (status !== undefined) expect(status).toBe(text === undefined ? 204 : 200);
        expect(text ?? "").not.toContain(SECRET_CAUSE);
      });

      test("and the gateway works as before", async () => {
        const failed = fixtures.filter(({ sent }) => sent.includes('"fail') || sent.includes('"unwritable'));
        expect(gateway.linesOf("unexpected.error").length > 0).toBe(failed.length > 0);
        for (const one of opened.values()) await (await one)[Symbol.asyncDispose]();
        await gateway[Symbol.asyncDispose]();
      });
    });
  }
}
