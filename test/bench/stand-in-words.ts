/** A message with this word is answered at once, in this number of pieces, even by a stand-in with a pace. */
export const AT_ONCE_WORD = "quickly";
export const FEW_PIECES = 10;

/** The answer of a stand-in: a number of pieces, at once or at a rate per second. */
export type StandInOptions = { pieces: number; perSecond?: number };

/**
 * The pieces of a reply, all of the same length. Each has its number and its stream, so that a lost piece, a wrong order or a piece of another stream
 * is found.
 */
export function piecesOf(stream = "0000", count: number): string[] {
  return Array.from({ length: count }, (_, at) => `${stream}.${String(at).padStart(5, "0")} `);
}
