import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { expect, it } from "vitest";
import { systemClock } from "#core/clock.ts";
import { createPostgresStore } from "#store/postgres/postgres.ts";
import { postgresTests } from "#test/harness/postgres.ts";

/** A way to a server that is open, closed, or open for one connection alone, on which every answer takes a while. */
const createDoor = async (port: number) => {
  const sockets = new Set<Socket>();
  let mode: "open" | "closed" | "one" = "open";
  const server = createServer((near) => {
    near.on("error", () => {}).on("close", () => sockets.delete(near));
    if (mode === "closed" || (mode === "one" && sockets.size > 0)) {
      near.destroy();
      return;
    }
    const delayMs = mode === "one" ? 60 : 0;
    sockets.add(near);
    const far = connect(port, "127.0.0.1").on("error", () => near.destroy());
    near.on("data", (bytes) => far.write(bytes)).on("close", () => far.destroy());
    far.on("data", (bytes) => setTimeout(() => near.writable && near.write(bytes), delayMs));
    far.on("close", () => near.destroy());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    set(next: typeof mode): void {
      mode = next;
      if (mode === "closed") for (const socket of sockets) socket.destroy();
    },
    [Symbol.dispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
};

await postgresTests((server) => {
  it("a store that loses its database again while it is still being found goes on looking for it", async () => {
    const url = new URL(await server.createSchema());
    using door = await createDoor(Number(url.port));
    url.port = String(door.port);
    const told: string[] = [];
    const pings: Promise<unknown>[] = [];
    await using store = await createPostgresStore({
      clock: systemClock,
      url: [url.href],
      connections: 1,
      notice: ({ name }) => {
        told.push(name);
        if (name === "available" && told.filter((other) => other === name).length === 1)
          setImmediate(() => pings.push(store.ping().catch(() => {})));
      },
    });
    await store.ping();
    door.set("closed");
    await expect.poll(() => told).toContain("unavailable");
    door.set("one");
    await expect.poll(() => told.slice(1)).toEqual(["unavailable", "available", "unavailable"]);
    door.set("open");
    await expect
      .poll(
        async () =>
          await store.ping().then(
            () => "answers",
            () => "away",
          ),
      )
      .toBe("answers");
    await Promise.all(pings);
  });
});
