import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from "node:fs";
import { open } from "node:fs/promises";

/** With O_NONBLOCK, opening a pipe does not wait for a writer. Windows has no such flag. */
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);
const PIECE_BYTES = 65_536;

/** The codes of the errors thrown here, in addition to those of Node. */
export const NOT_REGULAR = "NOT_REGULAR";
export const TOO_LARGE = "TOO_LARGE";

/**
 * Reads a file of at most `most` bytes. Throws an error with the code NOT_REGULAR for a pipe or a device, which may never end, and TOO_LARGE
 * for a larger file, which is not read to its end.
 */
export async function readRegularFile(path: string, most: number): Promise<Buffer> {
  const file = await open(path, FLAGS);
  try {
    check(await file.stat());
    const pieces = collect(most);
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(PIECE_BYTES));
      if (bytesRead === 0) return pieces.whole();
      pieces.add(buffer.subarray(0, bytesRead));
    }
  } finally {
    await file.close();
  }
}

/** The same, synchronously. */
export function readRegularFileSync(path: string, most: number): Buffer {
  const file = openSync(path, FLAGS);
  try {
    check(fstatSync(file));
    const pieces = collect(most);
    for (;;) {
      const buffer = Buffer.alloc(PIECE_BYTES);
      const bytesRead = readSync(file, buffer);
      if (bytesRead === 0) return pieces.whole();
      pieces.add(buffer.subarray(0, bytesRead));
    }
  } finally {
    closeSync(file);
  }
}

function fault(code: string): Error {
  return Object.assign(new Error(code), { code });
}

function check(stats: Stats): void {
  if (stats.isDirectory()) throw fault("EISDIR");
  if (!stats.isFile()) throw fault(NOT_REGULAR);
}

/** Limits the bytes that are read: a file may grow meanwhile, and files below /proc have the size 0. */
function collect(most: number) {
  const pieces: Buffer[] = [];
  let size = 0;
  return {
    add(piece: Buffer): void {
      size += piece.length;
      if (size > most) throw fault(TOO_LARGE);
      pieces.push(piece);
    },
    whole: (): Buffer => Buffer.concat(pieces),
  };
}
