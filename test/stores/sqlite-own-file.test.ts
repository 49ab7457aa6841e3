import { chmodSync, existsSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { copyStore } from "#store/sqlite/copy.ts";
import { createSqliteStore } from "#store/sqlite/sqlite.ts";
import type { StoreNotice } from "#store/store.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { newPath, workerUrl } from "./sqlite-engine.ts";
import { openWorld } from "./world.ts";

async function open(path: string) {
  const notices: StoreNotice[] = [];
  const notice = (one: StoreNotice) => void notices.push(one);
  const store = await createSqliteStore({ clock: createManualClock(), path, worker: workerUrl, notice });
  return { store, notices };
}

function modesIn(folder: string): Record<string, string> {
  return Object.fromEntries(readdirSync(folder).map((name) => [name, modeOf(join(folder, name))]));
}
function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8);
}

describe("the file of a SQLite store", () => {
  it("is accessible only to its owner, as are the files next to it and its copies, whatever the umask", async () => {
    const path = newPath();
    const copy = join(dirname(path), "copy.db");
    await using world = await openWorld({
      name: "sqlite",
      open: async () => (await open(path)).store,
    });
    await world.start({ session: "chat:1", text: "Between us" });
    await copyStore(path, copy, 1);
    const modes = modesIn(dirname(path));
    expect(Object.keys(modes)).toEqual(
      expect.arrayContaining(["copy.db", "store.db", "store.db-shm", "store.db-wal", "store.db.lock"]),
    );
    expect([...new Set(Object.values(modes))]).toEqual(["600"]);
  });

  it("keeps its mode; if others can read it, the start warns and says what to do", async () => {
    const path = newPath();
    writeFileSync(path, "");
    chmodSync(path, 0o640);
    chmodSync(dirname(path), 0o755);
    const { store, notices } = await open(path);
    await store[Symbol.asyncDispose]();
    expect(modeOf(path)).toBe("640");
    expect(notices).toEqual([
      {
        name: "exposed",
        detail: `Other users of this machine can read ${path}, which contains messages (mode 0640). To restrict it to the gateway's user: chmod 600 ${path} ${path}-wal ${path}-shm`,
      },
    ]);
    // A folder without access for others protects the file.
    chmodSync(dirname(path), 0o700);
    const again = await open(path);
    await again.store[Symbol.asyncDispose]();
    expect(again.notices).toEqual([]);
  });

  it.each(["is there", "is not there yet"])(
    "may be a link, where it %s; its log and its lock are next to the target",
    async (how) => {
      const path = newPath();
      const link = newPath();
      symlinkSync(path, link);
      if (how === "is there") await (await open(path)).store[Symbol.asyncDispose]();
      const { store } = await open(link);
      expect([`${path}-wal`, `${path}.lock`, `${link}-wal`, `${link}.lock`].map((file) => existsSync(file))).toEqual([
        true,
        true,
        false,
        false,
      ]);
      await expect(open(path)).rejects.toThrow(`is in use by another gateway: it holds ${path}.lock.`);
      await store[Symbol.asyncDispose]();
      expect(modeOf(path)).toBe("600");
    },
  );
});
