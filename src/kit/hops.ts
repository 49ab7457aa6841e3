/**
 * Says through how many announcements and agents a request has come. A gateway that announces, or asks an agent outside of itself, sends one
 * more than what started its turn had; an agent that calls the gateway in turn passes on what it was told.
 */
export const HOPS_HEADER = "x-gateway-hops";
/** The same where there are no headers: in what is sent beside a message of a protocol. */
export const HOPS_KEY = "agent-gateway/hops";

/** What came through so many is answered and goes on no more: announce → webhook → announce would go on for ever, as would agent → webhook → agent. */
export const MAX_HOPS = 3;

/** What the header of a request says: none is 0, of several the largest counts, and what cannot be read counts as the most. */
export const hopsOf = (header: string | undefined): number => {
  if (header === undefined) return 0;
  let most = 0;
  for (const part of header.split(",")) {
    const hops = /^[ \t]*\d{1,3}[ \t]*$/.test(part) ? Number(part) : MAX_HOPS;
    most = Math.max(most, hops);
  }
  return Math.min(most, MAX_HOPS);
};

export const hopsIn = (headers: Readonly<Record<string, string | string[] | undefined>>): number =>
  hopsOf(headers[HOPS_HEADER] as string | undefined);

export const isLoop = (hops: number): boolean => hops >= MAX_HOPS;

export const loopWords = (hops: number): string => `it came through ${hops} announcements or agents, as in a loop`;
