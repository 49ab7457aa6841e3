import { readFileSync } from "node:fs";

type Schema = { [key: string]: unknown };
/** A place of the configuration, in steps: `*` is any name, `[]` any entry of a list. */
export type Place = readonly string[];

const schema = JSON.parse(
  readFileSync(new URL("../../generated/config.schema.json", import.meta.url), "utf8"),
) as Schema;

/** Every place where the schema accepts a text, with the patterns of that text. A choice among fixed words is not such a place. */
function textsIn(node: Schema, place: Place): [Place, string | undefined][] {
  if (typeof node.$ref === "string") {
    const { $ref, ...rest } = node;
    return textsIn({ ...followed($ref), ...rest }, place);
  }
  const inside = (key: string): [string, Schema][] => Object.entries((node[key] ?? {}) as Record<string, Schema>);
  const choices = ["oneOf", "anyOf", "allOf"].flatMap((key) => (node[key] ?? []) as Schema[]);
  const branches = ["if", "then", "else"].flatMap((key) => (key in node ? [node[key] as Schema] : []));
  const isText = [node.type].flat().includes("string") && node.enum === undefined && node.const === undefined;
  // Without a type and without a shape, a text is accepted, too.
  const isAnything = node.additionalProperties === true && node.properties === undefined;
  return [
    ...(isText ? [[place, node.pattern as string | undefined] satisfies [Place, string | undefined]] : []),
    ...(isAnything ? [[[...place, "*"], undefined] satisfies [Place, undefined]] : []),
    ...[...choices, ...branches].flatMap((one) => textsIn(one, place)),
    ...inside("properties").flatMap(([key, one]) => textsIn(one, [...place, key])),
    ...inside("patternProperties").flatMap(([, one]) => textsIn(one, [...place, "*"])),
    ...(isSchema(node.additionalProperties) ? textsIn(node.additionalProperties, [...place, "*"]) : []),
    ...(isSchema(node.items) ? textsIn(node.items, [...place, "[]"]) : []),
  ];
}

function followed(ref: string): Schema {
  return ref
    .slice(2)
    .split("/")
    .reduce((node, step) => node[step] as Schema, schema);
}
function isSchema(node: unknown): node is Schema {
  return typeof node === "object" && node !== null;
}

/**
 * The places in which the value of a variable is shown, because it names or describes something that logs must show. It is hidden in every other
 * place of the schema. Add a new key here only if its value is never a secret.
 */
export const SHOWN = [
  "gateway.host",
  "gateway.listeners.[].host",
  "gateway.listeners.[].tls.cert",
  "gateway.listeners.[].tls.key",
  "gateway.defaultAgent",
  "gateway.trustedProxies.[]",
  "gateway.clearTextFrom.[]",
  "gateway.allowedOrigins.[]",
  "gateway.announceTo",
  "gateway.rest.auth.keys.[].name",
  "gateway.rest.auth.keys.[].agents.[]",
  "gateway.rest.auth.keys.[].budget.timeZone",
  "gateway.mcp.agents.[]",
  "gateway.rpc.auth.tokens.[].name",
  "gateway.rpc.auth.tokens.[].permissions.[]",
  "gateway.rpc.auth.tokens.[].agents.[]",
  "gateway.rpc.auth.tokens.[].budget.timeZone",
  "webhooks.token.[].name",
  "webhooks.path",
  "webhooks.allowedIps.[]",
  "webhooks.mappings.*.message",
  "webhooks.mappings.*.agent",
  "webhooks.mappings.*.session",
  "webhooks.mappings.*.model",
  "webhooks.mappings.*.channel",
  "webhooks.mappings.*.to",
  "webhooks.mappings.*.thread",
  "agents.*.description",
  "agents.*.instructions",
  "agents.*.instructionsFile",
  "agents.*.model",
  "agents.*.models.[]",
  "agents.*.models.*.model",
  "agents.*.fallbacks.[]",
  "agents.*.summaryModel",
  "agents.*.tools.[]",
  "agents.*.command.cwd",
  "agents.*.acp.cwd",
  "agents.*.skills.[]",
  "skills.dirs.[]",
  "skills.dirs.[].path",
  "tools.*.cwd",
  "channels.*.to",
  "notify.*.events.[]",
  "notify.*.agents.[]",
  "store.path",
  "budgets.*.timeZone",
  "budgets.*.agents.[]",
  "budgets.*.keys.[]",
  "schedules.*.cron",
  "schedules.*.timeZone",
  "schedules.*.agent",
  "schedules.*.message",
  "schedules.*.skill",
  "schedules.*.session",
  "schedules.*.model",
  "schedules.*.channel",
];

/** The forms that a text with a secret may have to have. */
const FORMS = ["#", "https://127.0.0.1:1/#?as=#", "webhook:#", "schedule:#", "/#", "one/#"];

/**
 * The places whose text may hold a secret, each with such a text, in which `#` stands for the secret. A span of time, for instance, cannot.
 */
export function secretPlaces(secret: string): { place: Place; text: string }[] {
  const found = new Map<string, { place: Place; text: string }>();
  for (const [place, pattern] of textsIn(schema, [])) {
    const text = FORMS.find((form) => new RegExp(pattern ?? "", "u").test(form.replaceAll("#", secret)));
    if (text !== undefined && place[0] !== "$schema") found.set(place.join("."), { place, text });
  }
  return [...found.values()];
}

/** The smallest document with a value at this place. */
export function documentWith(place: Place, value: unknown): unknown {
  const [step, ...rest] = place;
  if (step === undefined) return value;
  const inside = documentWith(rest, value);
  return step === "[]" ? [inside] : { [step === "*" ? "one" : step]: inside };
}

/** Puts a text at each of these places that the document has no variable in, wherever the object around it exists. Returns the places that it lacks. */
export function fillPlaces(
  document: unknown,
  places: ReturnType<typeof secretPlaces>,
  reference: () => string,
): string[] {
  return places.flatMap(({ place, text }) => {
    if (hasReference(document, place)) return [];
    const put = (node: unknown, [step, ...rest]: Place): boolean => {
      if (typeof node !== "object" || node === null || step === undefined) return false;
      if (step === "[]")
        return rest.length > 0 && Array.isArray(node) && node.map((one) => put(one, rest)).some(Boolean);
      if (Array.isArray(node)) return false;
      const parent = node as Record<string, unknown>;
      if (step === "*" && rest.length > 0)
        return Object.values(parent)
          .map((one) => put(one, rest))
          .some(Boolean);
      if (rest.length > 0) return put(parent[step], rest);
      if (step in parent) return false;
      parent[step === "*" ? "made" : step] = text.replaceAll("#", reference);
      return true;
    };
    return put(document, place) ? [] : [place.join(".")];
  });
}

function hasReference(node: unknown, [step, ...rest]: Place): boolean {
  if (step === undefined) return typeof node === "string" && node.includes("${");
  if (typeof node !== "object" || node === null || Array.isArray(node) !== (step === "[]")) return false;
  const inside = step === "*" || step === "[]" ? Object.values(node) : [(node as Record<string, unknown>)[step]];
  return inside.some((one) => hasReference(one, rest));
}
