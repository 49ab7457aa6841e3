import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { SomeConfig } from "./gateway.ts";
import { root } from "./process.ts";

/**
 * A fixture has three lines that any program could run: a comment, `>>` the sent text, `<<` the answer (empty if there is none).
 * `>>name` sends with the token of that name. The answer is compared
 *
 *     << as JSON      each member; of an error's `data` only the given ones. "<time>" is any time, "<req>" any id of its kind,
 *                     "<number>" any number, "<text>" any text, "<any>" anything; "<turn:mine>" stores the value for a later {{mine}}
 *     <<= as text     exactly
 *     <<~ as text     `.+` is anything
 *
 * A first line `@ {…}` is the configuration of the gateway for all fixtures of the file.
 */
type Fixture = { title: string; token: string; sent: string; how: "json" | "text" | "like"; wanted: string };
type FixtureFile = { name: string; config: SomeConfig; fixtures: Fixture[] };

const FOLDER = join(root, "test/conformance/rpc");

export function readFixtures(): FixtureFile[] {
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith(".rpc"))
    .map((file) => parse(file, readFileSync(join(FOLDER, file), "utf8")));
}

function parse(name: string, text: string): FixtureFile {
  const file: FixtureFile = { name, config: {}, fixtures: [] };
  let comment: string[] = [];
  let sent: { token: string; text: string } | undefined;
  for (const line of text.split("\n")) {
    const [, mark = "", rest = ""] = /^(@|#|>>[\w-]*|<<[=~]?) ?(.*)$/s.exec(line) ?? [];
    if (mark === "@") file.config = JSON.parse(rest);
    else if (mark === "#") comment.push(rest);
    else if (mark.startsWith(">>")) sent = { token: mark.slice(2) || "ops", text: rest };
    else if (mark.startsWith("<<")) {
      if (!sent || comment.length === 0) throw new Error(`${name}: a fixture is a comment, >> and <<, not ${line}`);
      const how = mark === "<<=" ? "text" : mark === "<<~" ? "like" : "json";
      file.fixtures.push({ title: comment.join(" "), token: sent.token, sent: sent.text, how, wanted: rest });
      [comment, sent] = [[], undefined];
    } else if (line.trim() !== "") throw new Error(`${name}: what is this? ${line}`);
    else if (sent === undefined) comment = [];
  }
  if (sent) throw new Error(`${name}: ${comment.join(" ")} has no <<`);
  return file;
}

export type Kept = Map<string, string>;

const BLANKS: Record<string, string> = { tab: "\t", newline: "\r\n" };

export function textToSend({ sent }: Fixture, kept: Kept): string {
  return filled(sent, kept);
}

export function filled(line: string, kept: Kept): string {
  return line.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const text = kept.get(name) ?? BLANKS[name];
    if (text === undefined) throw new Error(`nothing was kept as ${name}`);
    return text;
  });
}

export function expectReply({ how, wanted: line }: Fixture, got: string | undefined, kept: Kept): void {
  const wanted = filled(line, kept);
  if (wanted === "") expect(got).toBeUndefined();
  else if (how === "text") expect(got).toBe(wanted);
  else if (how === "like") expect(got).toMatch(patternOf(wanted));
  else expect(likeness(JSON.parse(wanted), JSON.parse(String(got)), kept)).toEqual(JSON.parse(wanted));
}

function patternOf(wanted: string): RegExp {
  const parts = wanted.split(".+").map((part) => part.replaceAll(/[\\^$*+?.()|[\]{}]/g, "\\$&"));
  return new RegExp(`^${parts.join(".+")}$`);
}

const ID = "[0-9A-HJKMNP-TV-Z]{26}";
const KINDS: Record<string, RegExp> = {
  req: new RegExp(`^req_${ID}$`),
  msg: new RegExp(`^msg_${ID}$`),
  turn: new RegExp(`^turn_${ID}$`),
  evt: new RegExp(`^evt_${ID}$`),
  dlv: new RegExp(`^dlv_${ID}$`),
  fresh: new RegExp(`^webhook:${ID}$`),
  time: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
  text: /^/,
  number: /^-?[\d.]+$/,
};

/** Replaces matching values of an answer by placeholders, and reduces an error to the expected parts. */
export function likeness(wanted: unknown, got: unknown, kept: Kept, inError = false): unknown {
  if (typeof wanted === "string") {
    const [, kind = "", name] = /^<(\w+)(?::(\w+))?>$/.exec(wanted) ?? [];
    const isKind = kind === "any" || (typeof got === typeOf(kind) && KINDS[kind]?.test(String(got)));
    if (isKind && name !== undefined) kept.set(name, String(got));
    return isKind ? wanted : got;
  }
  if (!isObject(wanted) || !isObject(got)) return got;
  if (Array.isArray(got)) return got.map((one, n) => likeness((wanted as unknown as unknown[])[n], one, kept, inError));
  const members = Object.entries(got).filter(([name]) => !inError || name in wanted);
  return Object.fromEntries(
    members.map(([name, value]) => [name, likeness(wanted[name], value, kept, inError || name === "error")]),
  );
}

function typeOf(kind: string) {
  return kind === "number" ? "number" : "string";
}
function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
