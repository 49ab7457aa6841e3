import { expect } from "vitest";
import type { ClaimedTurn } from "#store/store.ts";
import { claimCompaction, endCompaction } from "./compactions.ts";
import { used, type World, type WorldOptions } from "./world.ts";

export const SESSION = "chat:a";

export async function talk(world: World, texts: readonly string[], options: WorldOptions = {}): Promise<string[]> {
  const turnIds: string[] = [];
  for (const text of texts) {
    turnIds.push((await world.start({ text, ...options })).turnId);
    await world.end(await world.claimNext(), { reply: `re ${text}`, usage: used(1, 2) });
  }
  return turnIds;
}

/** Stores a summary of all messages except those with these texts. */
export async function compact(world: World, but: readonly string[] = [], session = SESSION): Promise<void> {
  await endCompactionWith(world, await claimCompaction(world, { session, leaseMs: 1e6 }), but);
}

export async function endCompactionWith(
  world: World,
  claimed: ClaimedTurn,
  but: readonly string[] = [],
): Promise<void> {
  const { sessionId } = claimed.turn;
  const all = await world.store.readMessages(sessionId, { limit: 10_000 });
  const kept = all.filter(({ text }) => but.includes(text));
  const compacted = {
    summary: "in short",
    outside: false,
    through: (await world.store.getSession(sessionId))?.lastSeq ?? 0,
    except: kept.map(({ seq }) => seq),
    before: { messages: all.length, tokens: all.length },
    after: { messages: kept.length, tokens: kept.length },
    freedBytes: 0,
  };
  expect(await endCompaction(world, claimed, compacted)).toBe(true);
}

/** Sweeps with a retention that ends now. A later entry keeps the session itself. */
export async function age(world: World, session = SESSION): Promise<void> {
  const sessionsBefore = world.clock.now();
  await world.clock.advance(1_000);
  await world.start({ session, text: "later" });
  await world.sweep({ sessionsBefore, webhookSessionsBefore: sessionsBefore });
}

export async function seqs(world: World, session?: string) {
  return (await world.entries(session)).map(({ seq }) => seq);
}
export async function texts(world: World, includeCompacted: boolean) {
  return (await world.store.readMessages(SESSION, { limit: 100, includeCompacted })).map(({ text }) => text);
}
export async function isKept(world: World, turnIds: readonly string[]) {
  return (await Promise.all(turnIds.map((turnId) => world.store.getTurn(turnId)))).map((turn) => turn !== undefined);
}
