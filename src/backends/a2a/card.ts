import type { AgentCard } from "@a2a-js/sdk";
import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";

export const WHO = "the remote agent";
const WELL_KNOWN = "/.well-known/agent-card.json";
/** The time for which a card is used before it is fetched again. */
const FRESH_MS = 5 * 60_000;
const SPOKEN = ["JSONRPC", "HTTP+JSON"];

/** The address of an agent's card: the given address itself if it names a file, else the well-known path below it. */
export function cardAddress(url: string): URL {
  const address = new URL(url);
  address.username = "";
  address.password = "";
  if (!address.pathname.endsWith(".json")) address.pathname = `${address.pathname.replace(/\/+$/, "")}${WELL_KNOWN}`;
  return address;
}

/** An agent's card. It is read again when it is old or after a failure. */
export function createCards(address: URL, fetchCard: typeof fetch, clock: Clock) {
  let known: { card: AgentCard; until: number } | undefined;
  return {
    async read(signal: AbortSignal): Promise<AgentCard> {
      if (known && clock.monotonic() < known.until) return known.card;
      const headers = { accept: "application/json", "a2a-version": "1.0" };
      const answer = await fetchCard(address, { headers, signal });
      const card = usable(await answer.json(), address.origin);
      known = { card, until: clock.monotonic() + FRESH_MS };
      return card;
    },
    forget(): void {
      known = undefined;
    },
  };
}

/** The card with only the interfaces that the gateway can use. There is at least one. */
function usable(card: unknown, origin: string): AgentCard {
  const listed = (card as AgentCard | null)?.supportedInterfaces;
  if (!Array.isArray(listed)) throw new BackendError(`${WHO} has no agent card of A2A 1.0 at its address`);
  const known = listed.filter(
    (one) =>
      typeof one?.url === "string" &&
      SPOKEN.includes(String(one.protocolBinding).toUpperCase()) &&
      /^1(\.|$)/.test(String(one.protocolVersion)),
  );
  if (known.length === 0) throw new BackendError(`${WHO} supports neither JSON-RPC nor HTTP+JSON of A2A 1.0`);
  // Headers and credentials of the configuration go only to the host that it names.
  const here = known.filter(({ url }) => URL.canParse(url) && new URL(url).origin === origin);
  if (here.length === 0)
    throw new BackendError(`${WHO} is at another host than its card: give the address of the card at that host`);
  return { ...(card as AgentCard), supportedInterfaces: here };
}
