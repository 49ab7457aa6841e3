type Request = { at: string };
type Turn = { created_at: string };
export type StreamRow<R extends Request, T extends Turn> = { request: R; turn?: never } | { turn: T; request?: never };

/** Requests and turns as one stream, the newest first, and no more than so many. A turn stands above the request that started it. */
export function streamOf<R extends Request, T extends Turn>(
  requests: readonly R[],
  turns: readonly T[],
  most: number,
): StreamRow<R, T>[] {
  const rows: { at: string; row: StreamRow<R, T> }[] = [
    ...turns.map((turn) => ({ at: turn.created_at, row: { turn } })),
    ...requests.map((request) => ({ at: request.at, row: { request } })),
  ];
  // Both came newest first, and sorting keeps the order of what is of one moment.
  rows.sort((one, other) => (one.at < other.at ? 1 : one.at > other.at ? -1 : 0));
  return rows.slice(0, most).map(({ row }) => row);
}
