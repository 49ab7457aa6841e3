import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { GatewayError } from "#kit/errors.ts";
import type { WireCall } from "#wire/call/call.ts";
import { acceptsEncoding, varyBy } from "#wire/call/compress.ts";

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  md: "text/markdown; charset=utf-8",
  txt: "text/plain; charset=utf-8",
  svg: "image/svg+xml",
  webp: "image/webp",
};

/** Sends a built file, in the smallest encoding that the client accepts; false if there is none. Files are read at a request, and are not cached. */
export async function sendFile(
  call: WireCall,
  file: string,
  rules: { policy: string; cache: string },
): Promise<boolean> {
  const found = await readEncoded(file, call.req.headers["accept-encoding"]);
  if (!found) return false;
  const etag = `"${createHash("sha256").update(found.bytes).digest("base64url").slice(0, 22)}"`;
  const headers = {
    "cache-control": rules.cache,
    "content-security-policy": rules.policy,
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-request-id": call.requestId,
    vary: varyBy(call.res, "Accept-Encoding"),
    etag,
  };
  if (call.req.headers["if-none-match"] === etag) {
    call.res.writeHead(304, headers).end();
    return true;
  }
  const about = {
    "content-type": TYPES[file.slice(file.lastIndexOf(".") + 1)] ?? "application/octet-stream",
    "content-length": found.bytes.length,
    ...(found.encoding && { "content-encoding": found.encoding }),
  };
  call.res.writeHead(200, { ...headers, ...about }).end(found.bytes);
  return true;
}

/** Refuses a call that does not read. */
export function requireGet({ req }: WireCall): void {
  if (req.method !== "GET" && req.method !== "HEAD")
    throw new GatewayError("method-not-allowed", "This path takes GET.", { allow: "GET, HEAD" });
}

type Encoded = { bytes: Buffer; encoding?: "gzip" };

async function readEncoded(file: string, accepted: string | string[] | undefined): Promise<Encoded | undefined> {
  const isAccepted = acceptsEncoding("gzip", accepted);
  const [first, second] = isAccepted ? [readCompressed, readPlain] : [readPlain, readCompressed];
  const found = (await first(file)) ?? (await second(file));
  // The package has some files only in compressed form.
  if (!found?.encoding || isAccepted) return found;
  const { gunzip } = await import("node:zlib");
  return { bytes: await promisify<Buffer, Buffer>(gunzip)(found.bytes) };
}

async function readPlain(file: string): Promise<Encoded | undefined> {
  const bytes = await readFile(file).catch(() => undefined);
  return bytes && { bytes };
}

async function readCompressed(file: string): Promise<Encoded | undefined> {
  const found = await readPlain(`${file}.gz`);
  return found && { ...found, encoding: "gzip" };
}
