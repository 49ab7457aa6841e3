import type { Clock } from "#kit/clock.ts";
import { HOPS_HEADER } from "#kit/hops.ts";
import { sign, signingKeyOf } from "#kit/signing.ts";

export type HttpSettings = {
  /** As whom it is asked. */
  agent: string;
  /** Models that it may be asked for. */
  models: readonly string[] | undefined;
  url: string;
  headers: Readonly<Record<string, string>>;
  /** Signs each request where it is given. */
  secret: string | undefined;
  /** Whether the conversation so far goes with each turn: not to an agent that keeps it itself. */
  history: boolean;
  connectMs: number;
  clock: Clock;
};

/** The headers of each request: the configuration's, and over them those of the contract. */
export const createHeaders = ({ url, headers, secret, clock }: HttpSettings) => {
  const own = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  const key = secret === undefined ? undefined : signingKeyOf(secret);
  const always: Record<string, string> = {
    "user-agent": "agent-gateway",
    ...credentialsOf(url),
    ...own,
    "content-type": "application/json",
    "accept-encoding": "identity",
  };
  return (id: string, accept: string, body: string, hops: number): Record<string, string> => {
    const made = { ...always, accept, "idempotency-key": id, [HOPS_HEADER]: String(hops) };
    if (!key) return made;
    const timestamp = String(Math.floor(clock.now() / 1_000));
    return {
      ...made,
      "webhook-id": id,
      "webhook-timestamp": timestamp,
      "webhook-signature": sign(key, id, timestamp, body),
    };
  };
};

/** What an address says of who calls. */
export const credentialsOf = (address: string): Record<string, string> => {
  const { username, password } = new URL(address);
  if (username === "" && password === "") return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { authorization: `Basic ${Buffer.from(pair).toString("base64")}` };
};
