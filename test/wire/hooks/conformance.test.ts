import { describe, expect, test } from "vitest";
import { startGateway } from "#test/harness/gateway.ts";
import { expectHookReply, readHookFixtures } from "#test/harness/hook-fixtures.ts";
import { hookTransports } from "#test/harness/hooks.ts";
import { filled, type Kept } from "#test/harness/rpc-fixtures.ts";
import { slowStore } from "#test/harness/stores.ts";

// Every fixture, on every transport, and with an asynchronous store. The replies are validated against the contract, too.

const { "HTTP/1.1": http1 } = hookTransports as { "HTTP/1.1": (typeof hookTransports)[string] };
const ways = { ...hookTransports, "HTTP/1.1, with a store to be waited for": { ...http1, wrapStore: slowStore } };

for (const [way, { open, config: ofWay, ...options }] of Object.entries(ways)) {
  for (const { name, config, fixtures } of readHookFixtures()) {
    describe(`${way}: ${name}`, async () => {
      const gateway = await startGateway({
        config: { ...config, gateway: { ...config.gateway, ...ofWay?.gateway } },
        ...options,
      });
      // Opened with its first fixture, because fixtures of other files may take longer than the lifetime of an idle connection.
      let client: Awaited<ReturnType<typeof open>> | undefined;
      const kept: Kept = new Map();

      test.each(fixtures)("$title", async (fixture) => {
        const { method, below, headers, body } = fixture;
        client ??= await open(gateway);
        const reply = await client.send(below, filled(body, kept), { method, headers });
        expectHookReply(fixture, reply, kept);
      });

      test("and no unexpected error was logged", async () => {
        await client?.[Symbol.asyncDispose]();
        await gateway[Symbol.asyncDispose]();
        expect(gateway.linesOf("unexpected.error")).toEqual([]);
      });
    });
  }
}
