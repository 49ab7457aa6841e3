import { createHash } from "node:crypto";
import type { MappedRequest } from "#kit/mapping-paths.ts";
import { type Filled, fillNamed, type Template } from "#kit/mapping-template.ts";

/** The templates of a mapping that name a place: its session, the key of its bursts, and the address of the reply. */
export type PlaceTemplates = {
  session: Template | undefined;
  key: Template | undefined;
  to: Template | undefined;
  thread: Template | undefined;
};

/**
 * The values of a request's templates. `session` is undefined for a new one. `key` is the text to show; it and `mergedBy` are undefined for a request that
 * is not merged. Requests of a mapping have the same `mergedBy` only if all values of their keys are the same.
 */
export type Places = {
  session: string | undefined;
  key: string | undefined;
  mergedBy: string | undefined;
  to: string | undefined;
  thread: string | undefined;
  lacks: readonly Lack[];
};

/** A template without a result: a placeholder has no value, or the text is not a valid address. */
export type Lack = { field: PlaceField } & (
  | { without: readonly string[]; reason?: undefined }
  | { without?: undefined; reason: AddressFault }
);
export type PlaceField = "session" | "coalesce.key" | "to" | "thread";
export type AddressFault = "too-long" | "control-characters" | "secret";

/** The most characters of a session, and of an address in a channel. */
const LONGEST = 256;
/** The most characters of a value in a session, and the characters that stay if it has more. */
const LONGEST_VALUE = 64;
const CUT_VALUE = 40;

/**
 * Fills in the templates of a mapping. A body decides only the values of placeholders: a session always begins with the text before its first placeholder, and
 * different values give different sessions. `hide` removes the secrets of the configuration from a text; no result contains one.
 */
export function fillPlaces(
  { session, key, to, thread }: PlaceTemplates,
  request: MappedRequest,
  hide: (text: string) => string,
): Places {
  const lacks: Lack[] = [];
  const complete = (field: PlaceField, { text, without }: Filled): string | undefined => {
    if (without.length === 0) return text;
    lacks.push({ field, without });
    return undefined;
  };
  const addressOf = (field: "to" | "thread", template: Template | undefined): string | undefined => {
    const text = template && complete(field, fillNamed(template, request));
    if (text === undefined || text === "") return undefined;
    const reason = addressFault(text, hide);
    if (reason === undefined) return text;
    lacks.push({ field, reason });
    return undefined;
  };
  const address = addressOf("to", to);
  const named = session && sessionOf(session, request, hide, complete);
  const shownKey = key && complete("coalesce.key", fillNamed(key, request));
  return {
    session: named,
    key: shownKey,
    mergedBy: key && shownKey !== undefined ? fillNamed(key, request, quoted).text : undefined,
    to: address,
    // A thread of the missing address does not belong to the channel's own.
    thread: to !== undefined && address === undefined ? undefined : addressOf("thread", thread),
    lacks,
  };
}

/** Quotes mark the end of a value, so different values never give the same key. */
function quoted(value: string): string {
  return JSON.stringify(value);
}

function addressFault(text: string, hide: (text: string) => string): AddressFault | undefined {
  if (text.length > LONGEST) return "too-long";
  if (/[\p{Cc}\p{Cs}]/u.test(text)) return "control-characters";
  return hide(text) === text ? undefined : "secret";
}

function sessionOf(
  template: Template,
  request: MappedRequest,
  hide: (text: string) => string,
  complete: (field: "session", filled: Filled) => string | undefined,
): string | undefined {
  const write = (value: string) => (hide(value) === value ? writtenValue(value) : shortened("", value));
  const name = complete("session", fillNamed(template, request, write));
  if (name === undefined || name.length <= LONGEST) return name;
  const [prefix = ""] = template.parts as readonly string[];
  return prefix + shortened(name.slice(prefix.length, prefix.length + CUT_VALUE), name);
}

/** Letters, digits, `.`, `_` and `-` stay; other characters become `~` and their UTF-8 bytes in hex. */
function writtenValue(value: string): string {
  const written = value.length > LONGEST_VALUE ? undefined : escaped(value);
  if (written !== undefined && written.length <= LONGEST_VALUE) return written;
  return shortened(escaped(value.slice(0, CUT_VALUE)).slice(0, CUT_VALUE), value);
}

function escaped(value: string): string {
  return value.replace(/[^A-Za-z0-9._-]/gu, (character) => {
    const code = character.codePointAt(0) as number;
    // A lone surrogate has no bytes in UTF-8.
    const isLone = code >= 0xd800 && code <= 0xdfff;
    return isLone ? `~u${code.toString(16)}` : `~${Buffer.from(character).toString("hex")}`;
  });
}

/** An escaped value never contains two tildes in a row, so no other value has this form. */
function shortened(start: string, whole: string): string {
  return `${start}~~${createHash("sha256").update(whole, "utf16le").digest("hex").slice(0, 16)}`;
}

/**
 * The name of a group in the store. Requests for different agents, sessions or addresses in a channel are never merged: the reply to one could show the
 * message of another.
 */
export function groupKeyOf(mapping: string, agent: string, { mergedBy, session, to }: Places): string {
  const hash = createHash("sha256")
    .update(JSON.stringify([agent, mergedBy, session ?? null, to ?? null]))
    .digest("hex");
  return `group:${mapping}:${hash}`;
}
