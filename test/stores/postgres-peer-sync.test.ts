import { expect, it } from "vitest";
import { CachedCounts } from "#store/postgres/cached-counts.ts";
import { PeerSync } from "#store/postgres/peer-sync.ts";
import type { CommittedChanges } from "#store/postgres/records/records.ts";
import { newState, type State } from "#store/tables/table-records.ts";
import { createManualClock } from "#test/harness/clock.ts";

const NONE: Omit<CommittedChanges, "state"> = {
  news: [],
  counts: [],
  agents: [],
  beats: [],
  areKeysChanged: false,
  areAgentsPaused: false,
};

/** The payloads that a gateway with one peer sends after it committed a state with these counts and a ready turn. */
async function payloadsAfter(counts: Partial<State["open"]>): Promise<string[]> {
  const payloads: string[] = [];
  const notify = async (payload: string) => void payloads.push(payload);
  const none = async () => [];
  const [clock, known] = [createManualClock(), new CachedCounts()];
  const peers = new PeerSync({ clock, node: "node_a", known, readEntries: none, readGateway: none, notify, poll() {} });
  peers.received({ changes: [], notices: [] });
  const state = newState();
  Object.assign(state.open, counts);
  peers.committed({ ...NONE, state, news: [{ kind: "work", of: "turn" }] });
  peers.close();
  return payloads;
}

it("notifies other gateways of a ready compaction that this gateway has not claimed", async () => {
  expect(await payloadsAfter({ queued: 1 })).toHaveLength(1);
  expect(await payloadsAfter({ compactions: 1 })).toHaveLength(1);
  expect(await payloadsAfter({})).toEqual([]);
});

it("learns no older state, unless another server has taken over", () => {
  const known = new CachedCounts();
  const counts = { agent: "main", ...newState().open };
  const learn = (version: number, queued: number) =>
    known.learn({ ...NONE, state: { ...newState(), version, sessions: queued }, counts: [{ ...counts, queued }] });
  const read = () => [known.stats().sessions, known.agentCounts("main").queued];
  learn(5, 2);
  learn(4, 1);
  expect(read()).toEqual([2, 2]);
  known.expectAnyVersion();
  learn(4, 1);
  expect(read()).toEqual([1, 1]);
});
