import { expect, it } from "vitest";
import { sqlite } from "./sqlite-engine.ts";
import { openWorld, sweepOrder, times } from "./world.ts";

/** More than ten slices of a sweep check. */
const WEBHOOKS = 2_500;
/** One for each kind of work: old sessions of webhooks, of chats, old heads, old inbound records, and erasures. */
const SLICES = 5;

it("erases an old chat within a few slices of a sweep, however many webhook sessions it has to check", async () => {
  await using world = await openWorld(sqlite);
  await world.start({ session: "chat:old" });
  await world.end(await world.claimNext());
  await Promise.all(times(WEBHOOKS, (n) => world.start({ session: `webhook:${n}` })));
  const now = world.clock.now();
  const order = sweepOrder(now, { sessionsBefore: now, webhookSessionsBefore: now });
  for (let slice = 0; slice < SLICES; slice++) expect(await world.store.sweep(order)).toBe(true);
  expect(await world.store.getSession("chat:old")).toBeUndefined();
});
