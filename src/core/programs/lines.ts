const NEWLINE = 0x0a;

export class LineTooLong extends Error {
  constructor(most: number) {
    super(`a line is longer than ${most} bytes`);
  }
}

/** Cuts bytes into lines, wherever their borders are. Keeps no more than one line of at most `most` bytes, and throws LineTooLong past that. */
export const createLineCutter = (most: number) => {
  let begun: Buffer[] = [];
  let length = 0;
  const take = (last: Buffer): Buffer => {
    const line = begun.length === 0 ? last : Buffer.concat([...begun, last]);
    begun = [];
    length = 0;
    return line;
  };
  const check = (more: number): void => {
    if (length + more > most) throw new LineTooLong(most);
  };
  return {
    /** The lines that these bytes complete, without their ends. */
    *push(bytes: Buffer): Generator<Buffer> {
      let from = 0;
      for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, from)) {
        check(at - from);
        yield take(bytes.subarray(from, at));
        from = at + 1;
      }
      check(bytes.length - from);
      if (from === bytes.length) return;
      begun.push(bytes.subarray(from));
      length += bytes.length - from;
    },
    /** What there is of a line that has no end; undefined where there is none. */
    rest: (): Buffer | undefined => (length === 0 ? undefined : take(Buffer.alloc(0))),
  };
};
