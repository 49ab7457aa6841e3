import { join } from "node:path";
import { GatewayError } from "#kit/errors.ts";
import type { WireCall } from "#wire/call/call.ts";
import type { Door } from "#wire/call/front.ts";
import { requireGet, sendFile } from "./files.ts";

const PREFIX = "/console";
const ASSETS = `${PREFIX}/assets/`;
/** Every asset is named after its content, so it never changes. */
const FOR_EVER = "public, max-age=31536000, immutable";
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
 * the address itself.
 */
export function createConsoleDoor(folder: string): Door {
  const send = async (call: WireCall, name: string, cache: string): Promise<void> => {
    if (await sendFile(call, join(folder, name), { policy: POLICY, cache })) return;
    if (name !== "index.html") throw call.nothingThere();
    throw new GatewayError("not-found", "The console's pages are not built. Run `npm run build`.");
  };

  return (call) => {
    call.line.reached("console");
    requireGet(call);
    if (!call.path.startsWith(ASSETS)) return send(call, "index.html", "no-cache");
    const name = call.path.slice(ASSETS.length);
    if (!/^\w[\w.-]*\.(?:js|css|svg)$/.test(name)) throw call.nothingThere();
    return send(call, join("assets", name), FOR_EVER);
  };
}
