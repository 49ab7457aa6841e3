import { setTimeout as pause } from "node:timers/promises";
import { expect, it } from "vitest";
import { systemClock } from "#kit/clock.ts";
import { createPostgresStore } from "#store/postgres/postgres.ts";
import { createDoor } from "#test/harness/database-door.ts";
import { postgresTests } from "#test/harness/postgres.ts";

await postgresTests((server) => {
  it("a store that loses its database again while it reconnects continues to search for it", async () => {
    using door = await createDoor(await server.createSchema());
    const told: string[] = [];
    const pings: Promise<unknown>[] = [];
    await using store = await createPostgresStore({
      clock: systemClock,
      url: [door.url],
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

  it("a store whose database fails while it is being opened is refused with an error message", async () => {
    using door = await createDoor(await server.createSchema());
    for (const words of ["pg_advisory_lock", "listen gateway_", "gateway_state", "from nodes"]) {
      door.cutAt(words);
      const refused = createPostgresStore({ clock: systemClock, url: [door.url], connections: 1 });
      await expect(refused).rejects.toMatchObject({
        name: "store-unavailable",
        message: expect.stringMatching(/^The database cannot be used: .*/),
      });
    }
  });

  it("a store whose server accepts no further connections continues with its open ones, and does not wait", async () => {
    using door = await createDoor(await server.createSchema());
    const told: string[] = [];
    await using store = await createPostgresStore({
      clock: systemClock,
      url: [door.url],
      connections: 4,
      notice: ({ name }) => told.push(name),
    });
    await store.ping();
    door.set("held");
    const began = performance.now();
    // Calls of one turn of the event loop share a connection.
    await Promise.all(Array.from({ length: 20 }, (_, n) => pause(n).then(() => store.ping())));
    expect(door.held()).toBeGreaterThan(0);
    // Longer than the time limit for opening a connection.
    while (performance.now() - began < 1_500) await store.ping();
    door.set("open");
    while (performance.now() - began < 3_500) await Promise.all([store.ping(), store.ping(), store.ping()]);
    expect(told).not.toContain("unavailable");
  });
});
