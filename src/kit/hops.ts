/**
 * The number of announcements and agents that a request has come through. A gateway that announces, or asks an agent outside of
 * itself, sends one more than the cause of its turn had. An agent that calls the gateway in turn passes on the number it got.
 */
export const HOPS_HEADER = "x-gateway-hops";
/** The same without headers: in the metadata of a protocol's message. */
export const HOPS_KEY = "agent-gateway/hops";

/** A request with this many hops is answered and not passed on. Else announce → webhook, or agent → webhook, would never end. */
export const MAX_HOPS = 3;

/** The hops in a request's header: none is 0, of several the largest counts, and an unreadable one counts as the most. */
export function hopsOf(header: string | undefined): number {
  if (header === undefined) return 0;
  let most = 0;
  for (const part of header.split(",")) {
    const hops = /^[ \t]*\d{1,3}[ \t]*$/.test(part) ? Number(part) : MAX_HOPS;
    most = Math.max(most, hops);
  }
  return Math.min(most, MAX_HOPS);
}

export function hopsIn(headers: Readonly<Record<string, string | string[] | undefined>>): number {
  return hopsOf(headers[HOPS_HEADER] as string | undefined);
}

/** The hops of a system event, which are in its metadata, limited to `MAX_HOPS - 1`: a larger number can only come from a sender's metadata. */
export function hopsInMetadata(metadata: string | undefined): number {
  if (!metadata?.includes(HOPS_HEADER)) return 0;
  const { [HOPS_HEADER]: hops } = JSON.parse(metadata) as Record<string, unknown>;
  return hops === undefined ? 0 : Math.min(hopsOf(String(hops)), MAX_HOPS - 1);
}

export function isLoop(hops: number): boolean {
  return hops >= MAX_HOPS;
}

export function loopWords(): string {
  return `it passed through ${MAX_HOPS} or more announcements or agents, as in a loop`;
}
