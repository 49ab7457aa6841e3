import type { AgentCard } from "@a2a-js/sdk";
import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";

export const WHO = "the remote agent";
const WELL_KNOWN = "/.well-known/agent-card.json";
/** So long a card is believed. */
const FRESH_MS = 5 * 60_000;
const SPOKEN = ["JSONRPC", "HTTP+JSON"];

/** Where the card of an agent is: the address itself where it names a file, else below it. */
export const cardAddress = (url: string): URL => {
  const address = new URL(url);
  address.username = "";
  address.password = "";
  if (!address.pathname.endsWith(".json")) address.pathname = `${address.pathname.replace(/\/+$/, "")}${WELL_KNOWN}`;
  return address;
};

/** An agent's card, read again when it has grown old or when something went wrong. */
export const createCards = (address: URL, fetchCard: typeof fetch, clock: Clock) => {
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
};

/** The card with the interfaces that can be spoken to, of which there is one at least. */
const usable = (card: unknown, origin: string): AgentCard => {
  const listed = (card as AgentCard | null)?.supportedInterfaces;
  if (!Array.isArray(listed)) throw new BackendError(`${WHO} has no agent card of A2A 1.0 at its address`);
  const known = listed.filter(
    (one) =>
      typeof one?.url === "string" &&
      SPOKEN.includes(String(one.protocolBinding).toUpperCase()) &&
      /^1(\.|$)/.test(String(one.protocolVersion)),
  );
  if (known.length === 0) throw new BackendError(`${WHO} speaks neither JSON-RPC nor HTTP+JSON of A2A 1.0`);
  // What the configuration gives to send, credentials too, is for the host that it names.
  const here = known.filter(({ url }) => URL.canParse(url) && new URL(url).origin === origin);
  if (here.length === 0)
    throw new BackendError(`${WHO} is at another host than its card: give the address of the card at that host`);
  return { ...(card as AgentCard), supportedInterfaces: here };
};
