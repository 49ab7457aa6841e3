import { access, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { GatewayError } from "#kit/errors.ts";
import { nearest } from "#kit/nearest.ts";
import type { WireCall } from "#wire/call/call.ts";
import type { Door } from "#wire/call/front.ts";
import { PRIVATE, sendBody } from "#wire/call/problem.ts";
import { type Encoded, encode, requireGet, sendEncoded, sendFile } from "./files.ts";
import { wantsPage } from "./index-page.ts";

const PREFIX = "/docs";
/** The pages run only their own scripts, call no address, and cannot be framed. */
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
const FILE = /^(?:images\/)?\w[\w.-]*\.(?:html|js|css|md|txt|svg|webp)$/;

/**
 * Serves the documentation from `folder`: its overview at `/docs` itself, and every file by its name below. A page is also found without its
 * file extension. For an unknown address a browser gets a page with the list of all pages. `mcpAt` is the address of the MCP server, while it is on.
 */
export function createDocsDoor(folder: string, mcpAt: (call: WireCall) => string | undefined): Door {
  const readWhole = encodeOnce(folder);
  return async (call) => {
    call.line.reached(call.path === PREFIX ? "ops.docs" : "docs");
    requireGet(call);
    const name = call.path.slice(PREFIX.length + 1);
    // The links of this page lead below the path that it is served at.
    const file = call.path === PREFIX ? "root.html" : name || "index.html";
    const mcp = file === LIST ? mcpAt(call) : undefined;
    const made = file === WHOLE ? await readWhole() : mcp && (await encodeList(folder, mcp));
    if (made) return await sendEncoded(call, made, file, RULES);
    if (FILE.test(file) && (await sendFile(call, join(folder, file), RULES))) return;
    if (call.path === PREFIX) throw new Error("the documentation is not built: run `npm run build`");
    const page = /^([\w-]+)(\/?)$/.exec(name.toLowerCase());
    if (page && (await exists(join(folder, `${page[1]}.html`))))
      return redirect(call, `${page[2] && "../"}${page[1]}.html`);
    if (wantsPage(call.req.headers.accept)) return await sendMissing(call, folder, name);
    throw await nothingAt(call, folder, name);
  };
}

const LIST = "llms.txt";
const WHOLE = "llms-full.txt";
/** The group of pages in the list that users of the gateway do not need. */
const PROJECT = "## The project";

/** The list of the pages for language models, with the address of the MCP server. Undefined if the documentation is not built. */
async function encodeList(folder: string, mcp: string): Promise<Encoded | undefined> {
  const pages = await readList(folder);
  const server = `- [MCP server](${mcp}): agents and skills as tools, with a REST key as bearer token`;
  return pages === undefined ? undefined : await encode(`${pages}\n## This gateway\n\n${server}\n`);
}

/** Reads the whole text at the first call, and again only after a failure. As a file it would double the size of the documentation. */
function encodeOnce(folder: string): () => Promise<Encoded | undefined> {
  let encoding: Promise<Encoded | undefined> | undefined;
  return async () => {
    encoding ??= encodeWhole(folder);
    try {
      return await encoding;
    } catch (error) {
      encoding = undefined;
      throw error;
    }
  };
}

/** The pages of the list in one text. Undefined if the documentation is not built. */
async function encodeWhole(folder: string): Promise<Encoded | undefined> {
  const list = await readList(folder);
  if (list === undefined) return undefined;
  const [ofUsers = ""] = list.split(PROJECT);
  const names = [...ofUsers.matchAll(/\]\(([\w-]+\.md)\)/g)].map(([, name]) => name as string);
  const pages = await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
  return await encode(pages.join("\n\n---\n\n"));
}

function readList(folder: string): Promise<string | undefined> {
  return readFile(join(folder, LIST), "utf8").catch(() => undefined);
}

function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

/** `to` is relative: a proxy may serve the documentation below another path. */
function redirect({ res, requestId }: WireCall, to: string): void {
  res.writeHead(302, { location: to, "content-length": 0, "x-request-id": requestId, ...PRIVATE }).end();
}

/** The page's links lead into the folder of the documentation, however deep the address is. */
async function sendMissing(call: WireCall, folder: string, name: string): Promise<void> {
  const html = await readFile(join(folder, "404.html"), "utf8");
  const base = "../".repeat(name.split("/").length - 1) || "./";
  call.line.failed(new GatewayError("not-found"));
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "x-request-id": call.requestId,
    vary: "Accept",
  };
  sendBody(call.res, 404, headers, html.replace("<head>", `<head>\n<base href="${base}">`));
}

async function nothingAt({ path }: WireCall, folder: string, name: string): Promise<GatewayError> {
  const pages = (await readdir(folder)).filter((file) => file.endsWith(".html") && !HIDDEN.includes(file));
  const meant = nearest(
    name.replace(/\.html$/, "").toLowerCase(),
    pages.map((file) => file.slice(0, -".html".length)),
  );
  const words = meant === undefined ? `The overview is at ${PREFIX}.` : `Did you mean ${PREFIX}/${meant}.html?`;
  return new GatewayError("not-found", `There is nothing at ${path.slice(0, PATH_LIMIT)}. ${words}`);
}
/** Pages without their own address. */
const HIDDEN = ["root.html", "404.html"];
/** The longest path that an error repeats. */
const PATH_LIMIT = 200;
