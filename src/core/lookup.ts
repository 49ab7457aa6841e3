import { type LookupAddress, lookup } from "node:dns";
import type { LookupFunction } from "node:net";

type Answer = Parameters<LookupFunction>[2];

/**
 * Looks host names up, one at a time for each name: a look-up cannot be stopped and has few threads to run on, so that one name which
 * nobody answers for would hold up all others.
 */
export const createLookup = (resolve: typeof lookup = lookup): LookupFunction => {
  const waiting = new Map<string, Answer[]>();
  return (host, options, answer) => {
    const key = `${options.family ?? 0} ${options.all === true} ${host}`;
    const others = waiting.get(key);
    if (others) {
      others.push(answer);
      return;
    }
    const all = [answer];
    waiting.set(key, all);
    const tell = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => {
      waiting.delete(key);
      for (const each of all) each(error, address, family);
    };
    resolve(host, options, tell);
  };
};

/** How whoever is asked outside is reached, as undici's clients take it: the name looked up, connected and with TLS agreed on in so long. */
export const reachWithin = (timeout: number) =>
  ({ timeout, lookup: createLookup(), rejectUnauthorized: true, minVersion: "TLSv1.2" }) as const;

/** The longest head that an answer of theirs may have. */
export const HEAD_BYTES = 32 * 1024;
