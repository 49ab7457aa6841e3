import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { configOf } from "#test/crash/fleet.ts";
import { createFailingDisk, whyNoFailingDisk } from "#test/harness/failing-disk.ts";
import { runProcess } from "#test/harness/process.ts";
import { clientOf, linesOf, startNodes, until } from "./nodes.ts";

const noFault = whyNoFailingDisk();

describe("F02: a disk that does not sync", () => {
  test.skipIf(noFault)(
    `acknowledges nothing, says so, and goes on by itself when the disk is well${noFault ? ` (${noFault})` : ""}`,
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

      await disk.mend(first.pid, "sync/*");
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

/** Fills a store, and leaves its files as the end of its process left them. */
const fillAndEnd = async (signal: "SIGKILL" | "SIGTERM") => {
  const fleet = await startNodes();
  const client = clientOf(fleet.first);
  const ids: string[] = [];
  while (ids.length < 200) {
    const wakes = Array.from({ length: 10 }, (_, n) =>
      client.wake({ text: `event ${ids.length + n} ${"x".repeat(500)}` }),
    );
    for (const { status, json } of await Promise.all(wakes)) {
      expect(status).toBe(200);
      ids.push(json.eventId as string);
    }
  }
  await fleet.first.kill(signal);
  return { ...fleet, ids };
};

describe("F02: a store that was not closed", () => {
  test("a torn end of its log is taken off, and what was acknowledged before is there", async () => {
    await using fleet = await fillAndEnd("SIGKILL");
    const log = join(fleet.folder, "gateway.db-wal");
    // A last write that was cut in the middle, and one of which only rubbish reached the disk.
    const size = statSync(log).size;
    const file = openSync(log, "r+");
    writeSync(file, Buffer.alloc(3_000, "rubbish"), 0, 3_000, size);
    closeSync(file);
    truncateSync(log, size + 2_500);
    fleet.first.start();
    await fleet.first.up();
    const client = clientOf(fleet.first);
    for (const id of fleet.ids) expect(await client.event(id)).toMatchObject({ event_id: id });
    expect(await until(() => linesOf(fleet.first, "store.repaired").length)).toBe(1);
    expect((await client.wake({ text: "after" })).status).toBe(200);
  }, 60_000);

  let whole: Buffer | undefined;
  /** What a store that was filled is when it was closed. */
  const closedStore = async (): Promise<Buffer> => {
    await using fleet = await fillAndEnd("SIGTERM");
    return readFileSync(join(fleet.folder, "gateway.db"));
  };

  test.each([
    [
      "is damaged in the middle",
      (file: string) => writeAt(file, Math.floor(statSync(file).size / 16_384) * 8192, 2_000),
    ],
    ["has another head", (file: string) => writeAt(file, 0, 100)],
    ["is no database", (file: string) => writeFileSync(file, "not a database, but long enough to be one ".repeat(200))],
  ])(
    "a file that %s refuses to start, with a sentence",
    async (_, damage) => {
      whole ??= await closedStore();
      const folder = mkdtempSync(join(tmpdir(), "gateway-disk-"));
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      const file = join(folder, "gateway.db");
      writeFileSync(file, whole);
      damage(file);
      const config = configOf({ store: { type: "sqlite", path: file } });
      const { code, err, out } = await runProcess({ config });
      expect([code, out]).toEqual([1, ""]);
      expect(err).toMatch(/^The store cannot be opened: .*gateway\.db.*\.$/m);
      expect(err).not.toMatch(/\n\s+at /);
      expect(readdirSync(folder)).toContain("gateway.db");
    },
    60_000,
  );
});

const writeAt = (path: string, at: number, bytes: number): void => {
  const file = openSync(path, "r+");
  writeSync(file, Buffer.alloc(bytes, 0xa5), 0, bytes, at);
  closeSync(file);
};
