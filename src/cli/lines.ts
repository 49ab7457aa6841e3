/** A longer line is not read. */
export const MOST_LINE_MIB = 16;
const MOST_LINE_BYTES = MOST_LINE_MIB * 1024 * 1024;

/** The lines of a stream. Undefined for a line that is too long. */
export async function* linesOf(input: AsyncIterable<Buffer>): AsyncGenerator<Buffer | undefined> {
  let pieces: Buffer[] = [];
  let size = 0;
  const add = (piece: Buffer): void => {
    size += piece.length;
    if (size <= MOST_LINE_BYTES) pieces.push(piece);
    else pieces = [];
  };
  const finish = (): Buffer | undefined => {
    const line = size > MOST_LINE_BYTES ? undefined : Buffer.concat(pieces);
    pieces = [];
    size = 0;
    return line;
  };
  for await (const chunk of input) {
    let from = 0;
    for (let end = chunk.indexOf("\n"); end >= 0; end = chunk.indexOf("\n", from)) {
      add(chunk.subarray(from, end));
      yield finish();
      from = end + 1;
    }
    add(chunk.subarray(from));
  }
  if (size > 0) yield finish();
}
