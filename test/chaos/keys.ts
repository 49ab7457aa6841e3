import { setTimeout as pause } from "node:timers/promises";
import { type Broken, breach } from "#test/crash/breaches.ts";
import type { Fleet } from "#test/crash/fleet.ts";
import { bearer, SECRETS } from "#test/crash/requests.ts";
import type { Random } from "#test/harness/random.ts";

type Minted = { keyId: string; secret: string; state: "good" | "revoked" | "unknown" };

/** The promise is a second; a busy machine may need a few more. */
const KNOWN_WITHIN_MS = 5_000;
const EVERY_MS = 400;

/** Undefined if the result is unknown. */
async function ask(url: string, method: string, path: string, body?: object) {
  const options = { method, headers: bearer(SECRETS.consoleToken), signal: AbortSignal.timeout(10_000) };
  const answer = await fetch(`${url}/api/v1/keys${path}`, {
    ...options,
    ...(body && { body: JSON.stringify(body) }),
  }).catch(() => undefined);
  const text = await answer?.text().catch(() => undefined);
  return answer && text !== undefined ? { status: answer.status, text } : undefined;
}

/** Creates REST keys and revokes some of them, independently of other faults; with separate random numbers, so that a seed's faults do not change. */
export function startMinting(fleet: Fleet, random: Random) {
  const keys: Minted[] = [];
  let isStopped = false;
  const mint = async (): Promise<void> => {
    const made = await ask(random.pick(fleet.urls), "POST", "", { name: "chaos" });
    if (made?.status !== 201) return;
    const { key_id, key } = JSON.parse(made.text) as { key_id: string; key: string };
    const minted: Minted = { keyId: key_id, secret: key, state: "good" };
    keys.push(minted);
    if (random.chance(0.4)) return;
    await pause(random.below(500));
    minted.state = "unknown";
    const revoked = await ask(random.pick(fleet.urls), "DELETE", `/${key_id}`);
    if (revoked?.status === 204) minted.state = "revoked";
  };
  const run = async (): Promise<void> => {
    while (!isStopped) {
      await mint();
      await pause(random.below(2 * EVERY_MS));
    }
  };
  const running = run();
  return {
    keys: keys as readonly Minted[],
    async stop(): Promise<void> {
      isStopped = true;
      await running;
    },
  };
}

/** Checks that each gateway accepts valid keys and refuses revoked ones. */
export async function verifyKeys(fleet: Fleet, keys: readonly Minted[]): Promise<Broken[]> {
  const broken: Broken[] = [];
  const end = performance.now() + KNOWN_WITHIN_MS;
  for (const { keyId, secret, state } of keys) {
    if (state === "unknown") continue;
    const due = state === "good" ? 200 : 401;
    for (const url of fleet.urls) {
      let status = 0;
      do {
        const answer = await fetch(`${url}/api/v1/skills/list`, { headers: bearer(secret) });
        await answer.arrayBuffer();
        status = answer.status;
      } while (status !== due && performance.now() < end && (await pause(100, true)));
      if (status !== due)
        broken.push(breach("a key is known everywhere", `it is ${state}, and got ${status}`, keyId, url));
    }
  }
  return broken;
}
