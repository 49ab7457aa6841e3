/** A question with this word is answered at once, in so many pieces, also by a stand-in that has a pace. */
export const AT_ONCE_WORD = "quickly";
export const FEW_PIECES = 10;

/** How a stand-in answers: so many pieces, at once or so many a second. */
export type StandInOptions = { pieces: number; perSecond?: number };

/** The pieces of a reply, all of one length. Each says which it is, and of which stream: one that is lost, out of order or another's is seen. */
export function piecesOf(stream = "0000", count: number): string[] {
  return Array.from({ length: count }, (_, at) => `${stream}.${String(at).padStart(5, "0")} `);
}
