import { readFileSync } from "node:fs";
import { join } from "node:path";
import { brotliDecompressSync } from "node:zlib";

/** A file that was made with version 0.2.0, see 0.2.0/make.ts. */
export function fixture(name: string): Buffer {
  return brotliDecompressSync(readFileSync(join(import.meta.dirname, "0.2.0", `${name}.br`)));
}
