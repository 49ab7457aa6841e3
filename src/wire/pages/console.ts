import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { GatewayError } from "#kit/errors.ts";
import type { WireCall } from "#wire/call/call.ts";
import type { Door } from "#wire/call/front.ts";

const PREFIX = "/console";
const ASSETS = `${PREFIX}/assets/`;
/** Every asset is named after its content, so it never changes. */
const FOR_EVER = "public, max-age=31536000, immutable";
const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};
/** The page runs its own scripts only, talks to its own gateway only, and stands in no frame. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types dompurify",
].join("; ");

/**
 * Serves the console's pages from `folder`: its assets by their names, and at every other path below `/console` the one page, which reads
 * the address itself. Nothing is read before somebody asks, and nothing is kept in memory.
 */
export const createConsoleDoor = (folder: string): Door => {
  const send = async (call: WireCall, name: string, cache: string): Promise<void> => {
    const found = await readEncoded(join(folder, name), String(call.req.headers["accept-encoding"] ?? ""));
    if (!found) {
      if (name !== "index.html") throw call.nothingThere();
      throw new GatewayError("not-found", "The console's pages are not built. Run `npm run build`.");
    }
    const etag = `"${createHash("sha256").update(found.bytes).digest("base64url").slice(0, 22)}"`;
    const headers = {
      "content-type": TYPES[name.slice(name.lastIndexOf(".") + 1)] ?? "text/html; charset=utf-8",
      "cache-control": cache,
      "content-security-policy": POLICY,
      "cross-origin-opener-policy": "same-origin",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
      "x-request-id": call.requestId,
      vary: "Accept-Encoding",
      etag,
      ...(found.encoding && { "content-encoding": found.encoding }),
    };
    if (call.req.headers["if-none-match"] === etag) call.res.writeHead(304, headers).end();
    else call.res.writeHead(200, { ...headers, "content-length": found.bytes.length }).end(found.bytes);
  };

  return (call) => {
    call.operation = "console";
    const { method } = call.req;
    if (method !== "GET" && method !== "HEAD")
      throw new GatewayError("method-not-allowed", "This path takes GET.", { allow: "GET, HEAD" });
    if (!call.path.startsWith(ASSETS)) return send(call, "index.html", "no-cache");
    const name = call.path.slice(ASSETS.length);
    if (!/^\w[\w.-]*\.(?:js|css|svg)$/.test(name)) throw call.nothingThere();
    return send(call, join("assets", name), FOR_EVER);
  };
};

/** A file in the smallest form that the client takes; undefined where there is none. */
const readEncoded = async (
  file: string,
  accepted: string,
): Promise<{ bytes: Buffer; encoding?: "br" | "gzip" } | undefined> => {
  for (const [encoding, suffix] of [["br", ".br"] as const, ["gzip", ".gz"] as const]) {
    if (!new RegExp(`(?:^|[,\\s])${encoding}(?!\\s*;\\s*q=0(?:\\.0*)?(?:,|$))(?:[;,\\s]|$)`, "i").test(accepted))
      continue;
    const bytes = await readFile(file + suffix).catch(() => undefined);
    if (bytes) return { bytes, encoding };
  }
  const bytes = await readFile(file).catch(() => undefined);
  return bytes && { bytes };
};
