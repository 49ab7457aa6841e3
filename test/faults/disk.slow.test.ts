import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createFailingDisk, whyNoFailingDisk } from "#test/harness/failing-disk.ts";
import { clientOf, linesOf, startNodes, until } from "./nodes.ts";

const noFault = whyNoFailingDisk();

describe("F02: a disk that does not sync", () => {
  test.skipIf(noFault)(
    `acknowledges nothing, reports the failure, and continues automatically when the disk works again${noFault ? ` (${noFault})` : ""}`,
    async () => {
      using disk = createFailingDisk();
      await using fleet = await startNodes({ env: disk.env });
      const { first } = fleet;
      const client = clientOf(first);
      const acknowledged: string[] = [];
      const wake = async (text: string) => {
        const reply = await client.wake({ text });
        if (reply.status === 200) acknowledged.push(reply.json.eventId as string);
        return reply;
      };
      for (let n = 0; n < 20; n++) expect((await wake(`before ${n}`)).status).toBe(200);

      await disk.fail(first.pid, "sync/*");
      for (let n = 0; n < 5; n++) {
        const reply = await wake(`meanwhile ${n}`);
        expect([reply.status, reply.error]).toEqual([503, "store-unavailable"]);
        expect(Number(reply.headers.get("retry-after"))).toBeGreaterThan(0);
      }
      await until(async () => (await client.ready()) === 503);
      await until(() => linesOf(first, "store.failed").length > 0);

      await disk.restore(first.pid, "sync/*");
      await until(async () => (await wake("after")).status === 200);
      await until(async () => (await client.ready()) === 200);
      await first.kill();
      first.start();
      await first.up();
      for (const id of acknowledged) await until(async () => (await client.event(id)).status === "handled");
    },
    60_000,
  );
});

test("F02: an incomplete end of an unclosed log is removed and counted, and acknowledged work is there", async () => {
  await using fleet = await startNodes();
  const client = clientOf(fleet.first);
  const ids: string[] = [];
  for (let n = 0; n < 50; n++) ids.push((await client.wake({ text: `event ${n}` })).json.eventId as string);
  await fleet.first.kill("SIGKILL");
  appendFileSync(join(fleet.folder, "gateway.db-wal"), Buffer.alloc(2_500, "rubbish"));
  fleet.first.start();
  await fleet.first.up();
  for (const id of ids) expect(await client.event(id)).toMatchObject({ event_id: id });
  expect(await until(() => linesOf(fleet.first, "store.repaired").length)).toBe(1);
  expect((await client.wake({ text: "after" })).status).toBe(200);
});
