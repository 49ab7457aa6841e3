/** Says through how many announcements a request has come. A gateway that announces sends one more than what started its turn had. */
export const HOPS_HEADER = "x-gateway-hops";

/** What came through so many is answered and not announced: announce → webhook → announce would go on for ever. */
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
