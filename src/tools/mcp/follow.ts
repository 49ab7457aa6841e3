import type { Client } from "@modelcontextprotocol/client";
import { type Clock, sleep } from "#kit/clock.ts";
import { isUnknownMethod } from "./errors.ts";

/** The time in which a server must acknowledge a subscription. */
const ACKNOWLEDGED_MS = 10_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

type FollowParts = { clock: Clock; onChange: () => void; signal: AbortSignal };

/**
 * Subscribes to changes of a server's list of tools, as MCP 2026-07-28 requires. Subscribes again after the
 * subscription has ended: then the list may have changed in between. Resolves when the signal aborts, and at once for a server
 * without subscriptions. Never throws.
 */
export async function followTools(client: Client, { clock, onChange, signal }: FollowParts): Promise<void> {
  if (client.getProtocolEra() !== "modern" || !client.getServerCapabilities()?.tools?.listChanged) return;
  let pause = FIRST_PAUSE_MS;
  for (let isAgain = false; !signal.aborted; isAgain = true) {
    const since = clock.monotonic();
    try {
      const { closed } = await client.listen({ toolsListChanged: true }, { timeout: ACKNOWLEDGED_MS });
      if (isAgain) onChange();
      await closed;
    } catch (error) {
      if (isUnknownMethod(error)) return;
    }
    if (clock.monotonic() - since > LONGEST_PAUSE_MS) pause = FIRST_PAUSE_MS;
    await sleep(clock, pause, signal);
    pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
  }
}
