import { expect, it } from "vitest";
import { CachedCounts } from "#store/postgres/cached-counts.ts";
import { PeerSync } from "#store/postgres/peer-sync.ts";
import type { CommittedChanges } from "#store/postgres/records/records.ts";
import { createManualClock } from "#test/harness/clock.ts";

const NONE: CommittedChanges = {
  deltas: new Map(),
  beats: [],
  ends: [],
  news: [],
  areAgentsPaused: false,
  areKeysChanged: false,
};

/** The payloads that a gateway with one peer sends after it committed these counts and a ready turn. */
async function payloadsAfter(deltas: readonly (readonly [string, number])[]): Promise<string[]> {
  const payloads: string[] = [];
  const notify = async (payload: string) => void payloads.push(payload);
  const none = async () => [];
  const [clock, known] = [createManualClock(), new CachedCounts()];
  const peers = new PeerSync({ clock, node: "node_a", known, readEntries: none, readGateway: none, notify, poll() {} });
  peers.received({ changes: [], notices: [] });
  peers.committed({ ...NONE, deltas: new Map(deltas), news: [{ kind: "work", of: "turn" }] });
  peers.close();
  return payloads;
}

it("notifies other gateways of a ready compaction that this gateway has not claimed", async () => {
  expect(await payloadsAfter([["queued", 1]])).toHaveLength(1);
  expect(await payloadsAfter([["compactions main", 1]])).toHaveLength(1);
  expect(
    await payloadsAfter([
      ["queued", 0],
      ["compactions main", 0],
    ]),
  ).toEqual([]);
});
