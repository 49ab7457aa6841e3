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
export async function sendFile(call: WireCall, file: string, rules: FileRules): Promise<boolean> {
  const found = await readEncoded(file, acceptsGzip(call));
  if (!found) return false;
  await sendEncoded(call, found, file, rules);
  return true;
}

/** Sends bytes as a file of this name. They are decompressed for a client that does not accept their encoding. */
export async function sendEncoded(call: WireCall, encoded: Encoded, name: string, rules: FileRules): Promise<void> {
  const found = encoded.encoding && !acceptsGzip(call) ? { bytes: await decompress(encoded.bytes) } : encoded;
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
    return;
  }
  const about = {
    "content-type": TYPES[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream",
    "content-length": found.bytes.length,
    ...(found.encoding && { "content-encoding": found.encoding }),
  };
  call.res.writeHead(200, { ...headers, ...about }).end(found.bytes);
}

/** Refuses a call that does not read. */
export function requireGet({ req }: WireCall): void {
  if (req.method !== "GET" && req.method !== "HEAD")
    throw new GatewayError("method-not-allowed", "This path takes GET.", { allow: "GET, HEAD" });
}

type FileRules = { policy: string; cache: string };
export type Encoded = { bytes: Buffer; encoding?: "gzip" };

/** A text in the form in which it is held and sent. */
export async function encode(text: string): Promise<Encoded> {
  const { gzip } = await import("node:zlib");
  return { bytes: await promisify<string, Buffer>(gzip)(text), encoding: "gzip" };
}

async function decompress(bytes: Buffer): Promise<Buffer> {
  const { gunzip } = await import("node:zlib");
  return await promisify<Buffer, Buffer>(gunzip)(bytes);
}

function acceptsGzip({ req }: WireCall): boolean {
  return acceptsEncoding("gzip", req.headers["accept-encoding"]);
}

/** The package has some files only in compressed form. */
async function readEncoded(file: string, isGzipAccepted: boolean): Promise<Encoded | undefined> {
  const [first, second] = isGzipAccepted ? [readCompressed, readPlain] : [readPlain, readCompressed];
  return (await first(file)) ?? (await second(file));
}

async function readPlain(file: string): Promise<Encoded | undefined> {
  const bytes = await readFile(file).catch(() => undefined);
  return bytes && { bytes };
}

async function readCompressed(file: string): Promise<Encoded | undefined> {
  const found = await readPlain(`${file}.gz`);
  return found && { ...found, encoding: "gzip" };
}
