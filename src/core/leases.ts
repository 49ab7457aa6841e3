import type { BeatClaim, Store } from "#store/store.ts";

const ALONE_MS = 30_000;
/** What a gateway held that died goes on elsewhere within 15 s, and one whose event loop stands still for 5 s loses nothing. */
const AMONG_OTHERS_MS = 10_000;

/** How long a claim lasts that is not extended. Where one process has the store for itself, leases end only when that stands still. */
export const leaseMsOf = ({ shared }: Pick<Store, "shared">): number => (shared ? AMONG_OTHERS_MS : ALONE_MS);

/** Whether a beat is this node's still: one that stood still for long finds it with another, and its events taken. */
export const isHeld = async (store: Pick<Store, "shared" | "extendBeat">, claim: BeatClaim): Promise<boolean> =>
  await store.extendBeat(claim, leaseMsOf(store)).catch(() => true);
