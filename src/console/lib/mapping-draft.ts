import type { MappingDraft } from "#generated/clients/typescript/src/rest.ts";
import { parseLookup } from "#kit/mapping-paths.ts";
import { HIDDEN, isSecretHeader } from "#kit/secret-headers.ts";
import { visibleLine } from "#kit/visible.ts";

/** A mapping in the form of the page. Pairs with the same place are alternatives. */
export type Draft = Record<(typeof TEXTS)[number], string> & {
  pairs: readonly { place: string; value: string }[];
  delivery: "" | "announce";
  take: "" | "all";
};
export const EMPTY_DRAFT: Draft = {
  name: "new-mapping",
  pairs: [],
  message: "",
  session: "",
  agent: "",
  model: "",
  channel: "",
  to: "",
  thread: "",
  delivery: "",
  key: "",
  window: "",
  maxWait: "",
  take: "",
};
const TEXTS = [
  ...(["name", "message", "session", "agent", "model", "channel", "to", "thread"] as const),
  ...(["key", "window", "maxWait"] as const),
] as const;
const OPTIONAL = ["agent", "session", "model", "channel", "delivery", "to", "thread"] as const;

type Path = readonly (string | number)[];

/** A place in a request as mappings write it: `body.issue.title`. */
export function placeOf(path: Path): string {
  return path.join(".");
}

/** The most characters of a path and of a value in `match`. */
const LONGEST_PATH = 512;
const LONGEST_VALUE = 1_024;

/** Why no mapping reads the value at a place; undefined if one can. */
export function whyUnreachable(path: Path, value: unknown): string | undefined {
  if (path[0] === "body" && path.some((step) => String(step).includes(".")))
    return "A key with a dot cannot be written as a path.";
  const lookup = parseLookup(placeOf(path));
  if ("flaw" in lookup) return `This path ${lookup.flaw}`;
  if (typeof value === "number" && !Number.isFinite(value)) return "Mappings cannot read a number of this size.";
  return value === HIDDEN ? "The recorder hides this value." : undefined;
}

/** Why a readable value cannot be a condition. */
export function whyNoMatch(path: Path, value: unknown): string | undefined {
  if (value === null) return "null never matches.";
  if (placeOf(path).length > LONGEST_PATH) return `A path has at most ${LONGEST_PATH} characters.`;
  return textOf(value).length > LONGEST_VALUE ? `A value has at most ${LONGEST_VALUE} characters.` : undefined;
}

/** Why a readable value cannot be part of a message. */
export function whyNoMessage(path: Path): string | undefined {
  return /[{}\r\n]/.test(placeOf(path)) ? "A template cannot contain this key." : undefined;
}

/** A value of JSON as `match` compares it. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

export function withMatch(draft: Draft, place: string, value: string): Draft {
  if (draft.pairs.some((pair) => pair.place === place && pair.value === value)) return draft;
  return { ...draft, pairs: [...draft.pairs, { place, value }] };
}

export function withMessage(draft: Draft, place: string): Draft {
  const gap = draft.message === "" || /\s$/.test(draft.message) ? "" : " ";
  return { ...draft, message: `${draft.message}${gap}{${place}}` };
}

/** Each value of the place has a session of its own; with several places, each combination of values. No value contains the separator. */
export function withSession(draft: Draft, place: string): Draft {
  return { ...draft, session: withPlace(draft.session || `webhook:${draft.name}`, place) };
}

/** Requests with the same value at the place become one turn; with several places, those with the same values. */
export function withKey(draft: Draft, place: string): Draft {
  return { ...draft, key: withPlace(draft.key, place) };
}

function withPlace(template: string, place: string): string {
  if (template.includes(`{${place}}`)) return template;
  return `${template}${template === "" ? "" : ":"}{${place}}`;
}

/** The draft in the form of the gateway: pairs with one place are one condition; empty fields and pairs without a place are omitted. */
export function mappingOf(draft: Draft): MappingDraft {
  const places = new Map<string, string[]>();
  for (const { place, value } of draft.pairs)
    if (place !== "") places.set(place, [...(places.get(place) ?? []), value]);
  const pairs = [...places].map(([place, [first = "", ...others]]) => {
    return [place, others.length === 0 ? first : [first, ...others]] as const;
  });
  const { name, message, key } = draft;
  const burst = { key, ...filled(draft, ["window", "maxWait", "take"]) };
  const rest = { ...filled(draft, OPTIONAL), ...(key !== "" && { coalesce: burst }) };
  return { name, match: Object.fromEntries(pairs), message, ...rest } as MappingDraft;
}

function filled(draft: Draft, names: readonly (keyof Draft)[]): Partial<Draft> {
  return Object.fromEntries(names.flatMap((name) => (draft[name] === "" ? [] : [[name, draft[name]]])));
}

/** An entry of `webhooks.mappings`, to be pasted into a configuration of JSON5 or YAML. */
export function blockOf(draft: Draft, isYaml: boolean): string {
  const { name, match, ...rest } = mappingOf(draft);
  const pairs = Object.entries(match).map(([place, value]) => `    ${textAt(place)}: ${writtenOf(value)},\n`);
  const fields = Object.entries(rest).map(([field, value]) => `  ${field}: ${writtenOf(value)},\n`);
  const conditions = pairs.length === 0 ? "{}" : `{\n${pairs.join("")}  }`;
  return `${textAt(name)}: {\n  match: ${conditions},\n${fields.join("")}}${isYaml ? "" : ","}`;
}

/** A value of the configuration, in which a dollar sign before a brace would start a reference. */
function writtenOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(writtenOf).join(", ")}]`;
  if (typeof value === "object" && value !== null)
    return `{ ${Object.entries(value)
      .map(([name, inner]) => `${name}: ${writtenOf(inner)}`)
      .join(", ")} }`;
  return textAt(String(value).replaceAll("${", () => "$${"));
}

/** JSON of a text. Characters that would steer a terminal are escapes, as a copy has them. */
function textAt(text: string): string {
  return visibleLine(JSON.stringify(text));
}

const KEY = "agent-gateway.mapping-draft";

/** Keeps the draft as long as the tab is open, without values from places that are named like a secret. */
export function storeDraft(draft: Draft, storage: { setItem(key: string, value: string): void }): void {
  const pairs = draft.pairs.filter(({ place }) => !place.split(".").some((step) => isSecretHeader(step.toLowerCase())));
  storage.setItem(KEY, JSON.stringify({ ...draft, pairs }));
}

/** The stored draft; an empty draft if none, or an invalid one, is stored. */
export function storedDraft(storage: { getItem(key: string): string | null }): Draft {
  try {
    const found = JSON.parse(storage.getItem(KEY) ?? "{}") as Record<string, unknown>;
    const texts = TEXTS.map((name) => [name, typeof found[name] === "string" ? found[name] : EMPTY_DRAFT[name]]);
    const pairs = (found.pairs as Draft["pairs"]).map(({ place, value }) => ({
      place: String(place),
      value: String(value),
    }));
    return {
      ...EMPTY_DRAFT,
      ...Object.fromEntries(texts),
      pairs,
      delivery: found.delivery === "announce" ? "announce" : "",
      take: found.take === "all" ? "all" : "",
    };
  } catch {
    return EMPTY_DRAFT;
  }
}
