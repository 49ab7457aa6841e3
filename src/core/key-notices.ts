import type { Clock } from "#kit/clock.ts";
import { hashOf } from "#kit/secrets.ts";
import type { Events } from "#observe/events.ts";
import type { Store, StorePolicy } from "#store/store.ts";
import { type EndingKey, needingAnother } from "./token-ages.ts";

const HOUR_MS = 3_600_000;
const NOTICE_MS = 7 * 24 * HOUR_MS;
const TYPE = "key.expiring";

type Parts = {
  store: Store;
  clock: Clock;
  events: Events;
  keys: () => readonly EndingKey[];
  policy: () => StorePolicy;
};

/** Notifies endpoints once of each REST key that expires within seven days and was not replaced. The returned function ends it. */
export function startKeyNotices({ store, clock, events, keys, policy }: Parts): () => void {
  /** The events that this process has stored, each with its endpoints. */
  const noted = new Set<string>();
  let stop = () => {};
  const note = async ({ keyId, name, expiresAt }: EndingKey, now: number): Promise<void> => {
    const endpoints = policy().notify.filter((endpoint) => endpoint.events.includes(TYPE));
    const id = keyId?.slice(keyId.indexOf("_") + 1) ?? hashOf(name).toString("base64url");
    const eventId = `ntf_${id}_${expiresAt}`;
    const once = [eventId, ...endpoints.map((endpoint) => endpoint.name)].join(" ");
    if (endpoints.length === 0 || noted.has(once)) return;
    const data = JSON.stringify({ keyId: keyId ?? null, name, expiresAt: new Date(expiresAt).toISOString() });
    await store.notifyEvent({ now, eventId, type: TYPE, data });
    noted.add(once);
  };
  const check = (): void => {
    stop = clock.after(HOUR_MS, check);
    const now = clock.now();
    const expiring = needingAnother(keys()).filter(({ expiresAt }) => expiresAt > now && expiresAt - now <= NOTICE_MS);
    for (const key of expiring)
      note(key, now).catch((error: unknown) => events.storeFailed({ operation: "notifyEvent", error }));
  };
  check();
  return () => stop();
}
