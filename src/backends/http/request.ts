import type { Clock } from "#kit/clock.ts";
import { HOPS_HEADER } from "#kit/hops.ts";
import { sign, signingKeyOf } from "#kit/signing.ts";
import { fixHeaders } from "../outbound/request-text.ts";

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

export type Target = { origin: string; path: string };

export const targetOf = (address: string): Target => {
  const { origin, pathname, search } = new URL(address);
  return { origin, path: `${pathname}${search}` };
};

/** The headers of each request: the configuration's, and over them what the contract says. Throws where they cannot be sent, with the first request. */
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
  for (const name of ["accept", "idempotency-key", HOPS_HEADER, ...(key ? SIGNATURE : [])]) delete always[name];
  return {
    always: once(() => fixHeaders(always)),
    /** Those that each request has of its own. */
    of(id: string, accept: string, body: string, hops: number): Record<string, string> {
      const made: Record<string, string> = { accept, "idempotency-key": id, "x-gateway-hops": String(hops) };
      if (!key) return made;
      const timestamp = String(Math.floor(clock.now() / 1_000));
      made["webhook-id"] = id;
      made["webhook-timestamp"] = timestamp;
      made["webhook-signature"] = sign(key, id, timestamp, body);
      return made;
    },
  };
};

const SIGNATURE = ["webhook-id", "webhook-timestamp", "webhook-signature"];

const once = <T>(make: () => T): (() => T) => {
  let made: T | undefined;
  return () => (made ??= make());
};

/** What an address says of who calls. */
export const credentialsOf = (address: string): Record<string, string> => {
  const { username, password } = new URL(address);
  if (username === "" && password === "") return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { authorization: `Basic ${Buffer.from(pair).toString("base64")}` };
};
