import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { clientOf, linesOf, startNodes, until } from "./nodes.ts";

const SIZE = 12;
/** A separate small disk, in a namespace that ends with the process. */
function withDisk(place: string) {
  return (usual: readonly string[]) => [
    "unshare",
    process.getuid?.() === 0 ? "-m" : "-rm",
    "sh",
    "-c",
    `mount -t tmpfs -o size=${SIZE}m tmpfs '${place}' && exec "$@"`,
    "sh",
    ...usual,
  ];
}

function whyNoDisk(): string | undefined {
  if (process.platform !== "linux") return "needs Linux";
  try {
    const [command = "", ...args] = withDisk(tmpdir())(["true"]);
    execFileSync(command, args, { stdio: "ignore" });
    return undefined;
  } catch {
    return "no file system can be mounted here: unshare and mount are refused";
  }
}
const why = whyNoDisk();

test.skipIf(why)(
  `F03: on a full disk it accepts no work, answers reads, and continues when there is room${why ? ` (${why})` : ""}`,
  async () => {
    const place = mkdtempSync(join(tmpdir(), "gateway-disk-"));
    onTestFinished(() => rmSync(place, { recursive: true, force: true }));
    await using fleet = await startNodes({
      store: { type: "sqlite", path: join(place, "gateway.db") },
      wrap: withDisk(place),
      agents: { quick: { backend: "echo", heartbeat: { every: "1h" } } },
    });
    const { first } = fleet;
    const client = clientOf(first);
    // The disk as its process sees it.
    const ballast = join(`/proc/${first.pid}/root`, place, "ballast");
    const acknowledged: string[] = [];
    const wake = async () => {
      const reply = await client.wake({ text: "x".repeat(20_000) });
      if (reply.status === 200) acknowledged.push(reply.json.eventId as string);
      return reply;
    };
    for (let n = 0; n < 10; n++) expect((await wake()).status).toBe(200);
    for (let size = SIZE * 2 ** 20; size > 4_096; size /= 2) fill(ballast, size);
    let refused = await wake();
    while (refused.status === 200) refused = await wake();
    expect([503, 507]).toContain(refused.status);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(["store-full", "store-unavailable"]).toContain(refused.error);
    for (let n = 0; n < 5; n++) expect([503, 507]).toContain((await wake()).status);

    expect((await client.event(acknowledged[0] as string)).status).toBe("queued");
    const { status, json } = await client.rest.call("events.list", { query: { limit: "5" } });
    expect([status, (json.events as object[]).length]).toEqual([200, 5]);
    await until(async () => (await client.rpc.call("system.health", {})).result.status === "degraded");
    expect(await client.ready()).toBe(503);
    const full = { ok: false, detail: "The store's disk is full." };
    expect(await (await fetch(`${first.url}/readyz`)).json()).toMatchObject({ parts: { store: full } });

    rmSync(ballast);
    await until(async () => (await wake()).status === 200);
    await until(async () => (await client.ready()) === 200);
    for (const id of acknowledged) expect(await client.event(id)).toMatchObject({ status: "queued" });
    expect(linesOf(first, "store.unavailable")).toHaveLength(1);
    expect(linesOf(first, "store.available")).toHaveLength(1);
  },
  60_000,
);

/** Writes this number of bytes, or as many as there is room for. */
function fill(path: string, bytes: number): void {
  try {
    writeFileSync(path, Buffer.alloc(bytes), { flag: "a" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  }
}
