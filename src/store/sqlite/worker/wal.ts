import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { OpenFailure } from "./failures.ts";

const HEADER = 32;
const FRAME_HEADER = 24;
/** The number of earlier rounds of the log whose frames may lie behind those of the present one. */
const ROUNDS = 10_000;

/** The bytes behind the last commit of a log that a gateway left: an unfinished transaction, or no data at all. */
type Tail = { bytes: number; frames: number };

/**
 * Looks through the write-ahead log before SQLite does, which takes it up to its first bad frame without a word. A bad frame
 * behind the last commit was never acknowledged. A bad frame before a commit was: then the file must not be opened.
 */
export function checkLog(path: string): Tail | undefined {
  const log = `${path}-wal`;
  if (!existsSync(log)) return undefined;
  const file = openSync(log, "r");
  try {
    return scan(file, path);
  } finally {
    closeSync(file);
  }
}

function scan(file: number, path: string): Tail | undefined {
  const header = Buffer.alloc(HEADER);
  if (readSync(file, header, 0, HEADER, 0) < HEADER) return undefined;
  const magic = header.readUInt32BE(0);
  if (magic >>> 1 !== 0x377f0682 >>> 1) return undefined;
  const isBig = (magic & 1) === 1;
  const pageSize = header.readUInt32BE(8);
  const salts = [header.readUInt32BE(16), header.readUInt32BE(20)] as const;
  let sums = sumOf(header.subarray(0, 24), [0, 0], isBig);
  if (sums[0] !== header.readUInt32BE(24) || sums[1] !== header.readUInt32BE(28)) return undefined;
  const frame = Buffer.alloc(FRAME_HEADER + pageSize);
  let isGood = true;
  /** The frames of the present round behind the last good commit. */
  let frames = 0;
  let bytes = 0;
  let ended = false;
  for (let at = HEADER; ; at += frame.length) {
    const length = readSync(file, frame, 0, frame.length, at);
    if (length === 0) break;
    const [first, second] = [frame.readUInt32BE(8), frame.readUInt32BE(12)];
    const isPresent = length === frame.length && first === salts[0] && second === salts[1];
    if (!isPresent) {
      isGood = false;
      if (!isEarlier(first, salts[0], length === frame.length)) bytes += length;
      continue;
    }
    // A transaction begins when the one before it is on disk: nothing before that can be bad.
    if (ended)
      throw new OpenFailure(
        `The SQLite file ${path} is damaged: its write-ahead log is broken in the middle. Restore a backup.`,
      );
    const isCommit = frame.readUInt32BE(4) !== 0;
    sums = sumOf(frame.subarray(FRAME_HEADER), sumOf(frame.subarray(0, 8), sums, isBig), isBig);
    isGood &&= sums[0] === frame.readUInt32BE(16) && sums[1] === frame.readUInt32BE(20);
    frames++;
    bytes += length;
    if (isCommit && isGood) frames = bytes = 0;
    else if (isCommit) ended = true;
  }
  return bytes > 0 ? { bytes, frames } : undefined;
}

/** The first salt grows by one with each round. */
function isEarlier(salt: number, present: number, isWhole: boolean): boolean {
  const rounds = (present - salt) >>> 0;
  return isWhole && rounds > 0 && rounds <= ROUNDS;
}

/** The running checksum of SQLite's log, over words of the order that its header names. */
function sumOf(bytes: Buffer, [first, second]: readonly [number, number], isBig: boolean): readonly [number, number] {
  let a = first;
  let b = second;
  for (let at = 0; at < bytes.length; at += 8) {
    a = (a + b + (isBig ? bytes.readUInt32BE(at) : bytes.readUInt32LE(at))) >>> 0;
    b = (b + a + (isBig ? bytes.readUInt32BE(at + 4) : bytes.readUInt32LE(at + 4))) >>> 0;
  }
  return [a, b];
}
