import { JoinedBytes } from "#kit/joined-bytes.ts";

const NEWLINE = 0x0a;

export class LineTooLong extends Error {
  constructor(most: number) {
    super(`a line is longer than ${most} bytes`);
  }
}

/** Cuts bytes into lines, wherever their borders are. Keeps no more than one line of at most `most` bytes, and throws LineTooLong past that. */
export function createLineCutter(most: number) {
  const begun = new JoinedBytes(most);
  const take = (last: Buffer): Buffer => {
    if (begun.length === 0) return last;
    begun.add(last);
    return begun.take();
  };
  const check = (more: number): void => {
    if (begun.length + more > most) throw new LineTooLong(most);
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
      begun.add(bytes, from);
    },
    /** The beginning of a line that has no end; undefined if there is none. */
    rest: (): Buffer | undefined => (begun.length === 0 ? undefined : begun.take()),
  };
}
