import { GatewayError } from "#kit/errors.ts";
import { quoted, suggest } from "#kit/fault-words.ts";
import { excerptOf, type Lookup, lookUp, type MappedRequest, parseLookup, textOf } from "#kit/mapping-paths.ts";
import { fillTemplate, parseTemplate, type Template } from "#kit/mapping-template.ts";
import { HIDDEN, isSecretHeader, withoutCredentials } from "#kit/secret-headers.ts";
import type { TurnGroup } from "#store/store.ts";
import { groupKeyOf, type Places, type PlaceTemplates } from "./mapping-places.ts";

export type { MappedRequest };

/** A mapping as the configuration describes it. */
export type MappingSettings = {
  name: string;
  /** Lookup path → the texts, any of which it may have. */
  match: Readonly<Record<string, readonly string[]>>;
  message: string;
  agent: string;
  /** A template. The text before its first placeholder begins with `webhook:`, and all of its sessions begin with that text. */
  session: string | undefined;
  model: string | undefined;
  channel: string | undefined;
  delivery: "none" | "announce";
  /** Templates of the address in the channel. */
  to: string | undefined;
  thread: string | undefined;
  /** Merges requests with the same key; `key` is a template. */
  coalesce: Coalesce | undefined;
  /** Whose way of signing counts instead of the shared token; with it, the mapping is reached at its own path alone. */
  verify: "standard-webhooks" | "github" | "stripe" | "slack" | "linear" | "twilio" | undefined;
  /** The address that its sender signs, if the scheme signs it. */
  verifyUrl?: string | undefined;
};

/** The wait of a burst: `windowMs` after its last request, at most `maxWaitMs` after its first. */
export type Coalesce = { key: string } & Pick<TurnGroup, "windowMs" | "maxWaitMs" | "take">;

type Pair = {
  path: string;
  lookup: Lookup;
  expected: readonly string[];
  mayBeJson: boolean;
  /** The name says that the compared value may be a secret: it is never shown. */
  hidden: boolean;
};
export type Mapping = Omit<MappingSettings, "match"> & {
  pairs: readonly Pair[];
  template: Template;
  places: PlaceTemplates;
};

/** The reason why a mapping does not match: the first pair that failed. The path `message` is the rendered message. */
export type Miss = { path: string; expected: readonly string[]; found: string | null };

/** The result of a mapping for a request. `tooLong`: it matches, but its message would be too long. */
export type Trial = { mapping: Mapping } & ({ message: string } | { miss: Miss; tooLong: boolean });

/** A mapping ready to be matched. Settings come checked: one that cannot be compiled throws. */
export function compileMapping({ match, ...rest }: MappingSettings): Mapping {
  const pairs = Object.entries(match).map(([path, expected]): Pair => {
    const lookup = sound(parseLookup(path), path);
    const mayBeJson = expected.some((text) => text[0] === "{" || text[0] === "[");
    const hidden = lookup.in === "body" && lookup.steps.some((step) => isSecretHeader(step.toLowerCase()));
    return { path, lookup, expected, mayBeJson, hidden };
  });
  const { session, coalesce, to, thread } = rest;
  const places = {
    session: session === undefined ? undefined : soundTemplate(session),
    key: coalesce && soundTemplate(coalesce.key),
    to: to === undefined ? undefined : soundTemplate(to),
    thread: thread === undefined ? undefined : soundTemplate(thread),
  };
  return { ...rest, pairs, template: soundTemplate(rest.message), places };
}

function soundTemplate(text: string): Template {
  return sound(parseTemplate(text), text);
}

function sound<T extends object>(parsed: T | { flaw: string }, written: string): T {
  if ("flaw" in parsed) throw new Error(`${written} ${parsed.flaw}`);
  return parsed;
}

/** The first pair that is not equal as text; undefined when all are. */
export function matchMapping({ pairs }: Mapping, request: MappedRequest): Miss | undefined {
  for (const { path, lookup, expected, mayBeJson, hidden } of pairs) {
    const value = lookUp(lookup, request);
    const text = typeof value === "object" && value !== null ? mayBeJson && JSON.stringify(value) : textOf(value);
    if (typeof text === "string" && expected.includes(text)) continue;
    const found = excerptOf(
      typeof value === "string" && path.startsWith("headers.") ? withoutCredentials(value) : value,
    );
    return hidden ? { path, expected: [HIDDEN], found: found && HIDDEN } : { path, expected, found };
  }
  return undefined;
}

/** The expected values of a mapping by their paths, as they may be shown. */
export function matchOf({ pairs }: Mapping): Record<string, string[]> {
  return Object.fromEntries(pairs.map(({ path, hidden, expected }) => [path, hidden ? [HIDDEN] : [...expected]]));
}

/** Matches, and renders the message. One that says nothing does not match: no agent is called for it. */
export function tryMapping(mapping: Mapping, request: MappedRequest, limit: number): Trial {
  const miss = matchMapping(mapping, request);
  if (miss) return { mapping, miss, tooLong: false };
  const message = fillTemplate(mapping.template, request, limit);
  if (message === undefined) {
    const most = { path: "message", expected: [`at most ${limit} characters`], found: "more" };
    return { mapping, miss: most, tooLong: true };
  }
  if (message.trim() === "")
    return { mapping, miss: { path: "message", expected: ["some text"], found: null }, tooLong: false };
  return { mapping, message };
}

/** The result for a request: the mapping that takes it, and why the earlier ones did not. */
export type Choice = { chosen: { mapping: Mapping; message: string } | undefined; missed: readonly Missed[] };
export type Missed = { mapping: Mapping; miss: Miss };

/** The first mapping that matches. A message that is too long is refused, as its sender would wait for it in vain. */
function chooseMapping(mappings: readonly Mapping[], request: MappedRequest, limit: number): Choice {
  const missed: Missed[] = [];
  for (const mapping of mappings) {
    const trial = tryMapping(mapping, request, limit);
    if ("message" in trial) return { chosen: trial, missed };
    if (trial.tooLong)
      throw new GatewayError(
        "too-large",
        `The message of the mapping ${mapping.name} has more than ${limit} characters.`,
      );
    missed.push(trial);
  }
  return { chosen: undefined, missed };
}

/** All that the configuration says of mappings. */
type MappingsSettings = {
  /** In the order in which they are tried. */
  mappings: readonly MappingSettings[];
  /** Where webhooks are received; a mapping's own path is its name under it. */
  path: string;
  /** The longest rendered message. */
  longestMessage: number;
  /** True if a delivery's timeline may show values from a body. */
  recordBodies: boolean;
};

/** The mappings of a configuration. */
export function createMappings(settings: MappingsSettings) {
  const all = new Map(settings.mappings.map((mapping) => [mapping.name, compileMapping(mapping)]));
  const shared = [...all.values()].filter(({ verify }) => verify === undefined);
  const get = (name: string): Mapping => {
    const mapping = all.get(name);
    if (mapping) return mapping;
    throw new GatewayError(
      "mapping-not-found",
      `No mapping is named ${quoted(name)}.${suggest(name, [...all.keys()])}`,
    );
  };
  return {
    find: (name: string): Mapping | undefined => all.get(name),
    /** In the order in which they are tried. */
    list: (): Mapping[] => [...all.values()],
    /** The mapping that takes a request: the named one or, of those that the shared token reaches, the first that matches. */
    choose: (request: MappedRequest, name?: string): Choice =>
      chooseMapping(name === undefined ? shared : [get(name)], request, settings.longestMessage),
    /** The result of each mapping for a request, or only of the named one or a draft, and the one that would start a turn. Nothing is started. */
    dryRun(request: MappedRequest, only?: string | Mapping): { starts: Mapping | undefined; trials: Trial[] } {
      const tried = only === undefined ? [...all.values()] : [typeof only === "string" ? get(only) : only];
      const trials = tried.map((mapping) => tryMapping(mapping, request, settings.longestMessage));
      // A mapping that verifies signatures is reached only by its own path.
      const starts = trials.find((trial) => "message" in trial && (only !== undefined || !trial.mapping.verify));
      return { starts: starts?.mapping, trials };
    },
    /** Where webhooks are received. */
    path: settings.path,
    /** The group of a request with these places. Undefined if the mapping merges nothing, or the request has no key. */
    groupOf({ name, agent, coalesce }: Mapping, places: Places): TurnGroup | undefined {
      if (coalesce === undefined || places.mergedBy === undefined) return undefined;
      const { windowMs, maxWaitMs, take } = coalesce;
      const longestText = settings.longestMessage;
      return { key: groupKeyOf(name, agent, places), windowMs, maxWaitMs, take, longestText };
    },
    recordBodies: settings.recordBodies,
    noteOf: (choice: Choice): string => noteOf(choice, settings.recordBodies),
  };
}

export type Mappings = ReturnType<typeof createMappings>;

const TOLD = 20;
const TOLD_TEXTS = 5;

/** A choice on the timeline: bounded, whatever the configuration and the request contain. */
function noteOf({ chosen, missed }: Choice, recordBodies: boolean): string {
  return JSON.stringify({
    matched: chosen?.mapping.name ?? null,
    tried: missed.slice(0, TOLD).map(({ mapping: { name }, miss: { path, expected, found } }) => ({
      mapping: name,
      path,
      expected: expected.slice(0, TOLD_TEXTS).map(excerptOf),
      ...((recordBodies || path.startsWith("headers.")) && { found }),
    })),
    untold: Math.max(missed.length - TOLD, 0),
  });
}
