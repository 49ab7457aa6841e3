import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { SomeConfig } from "./gateway.ts";
import { root } from "./process.ts";
import type { Reply } from "./rest.ts";
import { filled, type Kept, likeness } from "./rpc-fixtures.ts";

/**
 * A fixture of webhooks has three lines, like one of RPC: a comment, `>>` the request, `<<` the reply.
 *
 *     >> POST /wake {…}                        the method, the path below the webhook path (`.` is the webhook path itself), and the body
 *     >>{"x-gateway-token":"…"} POST /wake {…}  with these headers in addition to the usual ones, or instead of them; null omits one
 *     << 200 {…}                               the status, and the body as in fixtures of RPC; of a problem only the given members
 *     <<{"idempotent-replayed":"true"} 200 {…}  with these headers; null is a header that must be absent
 *
 * A first line `@ {…}` is the configuration of the gateway for all fixtures of the file.
 */
type HookFixture = {
  title: string;
  headers: Headings;
  method: string;
  below: string;
  body: string;
  wanted: { headers: Headings; status: number; body: string };
};
type HookFixtureFile = { name: string; config: SomeConfig; fixtures: HookFixture[] };
type Headings = Record<string, string | null>;

const FOLDER = join(root, "test/conformance/hooks");

export function readHookFixtures(): HookFixtureFile[] {
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith(".hook"))
    .map((file) => parse(file, readFileSync(join(FOLDER, file), "utf8")));
}

function parse(name: string, text: string): HookFixtureFile {
  const file: HookFixtureFile = { name, config: {}, fixtures: [] };
  let comment: string[] = [];
  let sent: Pick<HookFixture, "headers" | "method" | "below" | "body"> | undefined;
  for (const line of text.split("\n")) {
    const [, mark = "", headers = "{}", rest = ""] = /^(@|#|>>|<<)(\{\S*\})? ?(.*)$/s.exec(line) ?? [];
    const [first = "", second = "", third = ""] = /^(\S+)(?: (\S+))?(?: (.*))?$/s.exec(rest)?.slice(1) ?? [];
    if (mark === "@") file.config = JSON.parse(rest);
    else if (mark === "#") comment.push(rest);
    else if (mark === ">>")
      sent = { headers: JSON.parse(headers), method: first, below: second === "." ? "" : second, body: third };
    else if (mark === "<<") {
      if (!sent || comment.length === 0) throw new Error(`${name}: a fixture is a comment, >> and <<, not ${line}`);
      const wanted = { headers: JSON.parse(headers), status: Number(first), body: rest.slice(first.length + 1) };
      file.fixtures.push({ title: comment.join(" "), ...sent, wanted });
      [comment, sent] = [[], undefined];
    } else if (line.trim() !== "") throw new Error(`${name}: what is this? ${line}`);
    else if (sent === undefined) comment = [];
  }
  if (sent) throw new Error(`${name}: ${comment.join(" ")} has no <<`);
  return file;
}

export function expectHookReply({ wanted }: HookFixture, reply: Reply, kept: Kept): void {
  const body = JSON.parse(filled(wanted.body, kept));
  const isProblem = wanted.status >= 400;
  expect({ status: reply.status, body: likeness(body, reply.json, kept, isProblem) }).toEqual({
    status: wanted.status,
    body,
  });
  for (const [name, value] of Object.entries(wanted.headers)) expect(reply.headers.get(name), name).toBe(value);
}
