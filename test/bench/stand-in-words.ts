/** How a stand-in answers: so many pieces, at once or so many a second. */
export type StandInWish = { pieces: number; perSecond?: number };

/** The pieces of a reply, all of one length. Each says which it is, and of which stream: one that is lost, out of order or another's is seen. */
export const piecesOf = (stream = "0000", count: number): string[] =>
  Array.from({ length: count }, (_, at) => `${stream}.${String(at).padStart(5, "0")} `);
