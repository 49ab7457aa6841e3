import { join } from "node:path";
import type { Door } from "#wire/call/front.ts";
import { requireGet, sendFile } from "./files.ts";

const PREFIX = "/docs";
/** The pages run their own scripts only, call nobody, and stand in no frame. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");
const RULES = { policy: POLICY, cache: "no-cache" };

/** Serves the documentation from `folder`: its overview at `/docs` itself, and every file by its name below. */
export const createDocsDoor =
  (folder: string): Door =>
  async (call) => {
    call.operation = call.path === PREFIX ? "ops.docs" : "docs";
    requireGet(call);
    const name = call.path.slice(PREFIX.length + 1);
    // The links of this page lead below the path that it is served at.
    const file = call.path === PREFIX ? "root.html" : name || "index.html";
    const isName = /^(?:images\/)?\w[\w.-]*\.(?:html|js|css|md|txt|svg|webp)$/.test(file);
    if (isName && (await sendFile(call, join(folder, file), RULES))) return;
    if (call.path !== PREFIX) throw call.nothingThere();
    throw new Error("the documentation is not built: run `npm run build`");
  };
