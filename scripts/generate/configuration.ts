import { isObject, type Json, type JsonObject, list, object, text, texts } from "./json.ts";

/** One key of the configuration. */
export type Row = {
  key: string;
  type: string;
  default: string;
  restart: boolean;
  about: string;
  example: string;
  inside?: string;
};
/** The keys of one section: `gateway.rest`, `agents.<name>`. An object of several kinds has a section for each. */
export type Section = { title: string; about: string; rows: Row[] };

type Inner = { shape: JsonObject; at: string; restart: boolean };

const RESTART = /\s*Needs a restart(?:, but for certificates, which are read again in place)?\.?/;

/** The names of the shared shapes whose descriptions say more than their JSON type. */
const NOUNS: Readonly<Record<string, string>> = {
  Duration: "duration",
  Wait: "duration",
  Bytes: "size",
  Output: "size",
  Secret: "secret",
  ApiKey: "secret",
  Network: "address or network",
  BackendUrl: "address",
  ChannelUrl: "address",
};

/** The configuration in sections, from its complete schema in one file, in the order of the schema. */
export function configurationSections(root: JsonObject): Section[] {
  return sectionsOf(root, "", object(root.$defs), false);
}

/** The shared shapes of the schema, by their names. */
type Shapes = JsonObject;

function sectionsOf(schema: JsonObject, title: string, shapes: Shapes, isHeld: boolean): Section[] {
  const restart = isHeld || RESTART.test(text(schema.description));
  if (isObject(schema.properties)) {
    return sectionOf(schema, { title, about: text(schema.description), path: title, restart }, shapes);
  }
  const kinds = list(schema.oneOf).map(object);
  return kinds
    .filter((kind) => isObject(kind.properties))
    .flatMap((kind) => {
      const type = object(object(kind.properties).type);
      const name = type.const === undefined ? "" : ` with type ${text(type.const)}`;
      const about = text(type.description) || text(kind.description) || text(schema.description);
      return sectionOf(kind, { title: `${title}${name}`, about, path: title, restart }, shapes);
    });
}

/** The section of an object, and the sections of the objects in it. */
function sectionOf(
  schema: JsonObject,
  { title, about, path, restart }: { title: string; about: string; path: string; restart: boolean },
  shapes: Shapes,
): Section[] {
  const inner: Inner[] = [];
  const rows = rowsOf(schema, "", path, inner, shapes).map((row) => ({
    ...row,
    restart: row.restart || (restart && !row.key.startsWith("tls.")),
  }));
  const own = path === "" ? [] : [{ title, about: aboutOf(about), rows }];
  return [...own, ...inner.flatMap(({ shape, at, restart }) => sectionsOf(shape, at, shapes, restart))];
}

/** The keys of a small object are rows of the object that contains it. An object with a name has a section of its own. */
function rowsOf(
  schema: JsonObject,
  before: string,
  path: string,
  inner: Inner[],
  shapes: Shapes,
  within?: string,
): Row[] {
  return Object.entries(object(schema.properties)).flatMap(([name, value]) => {
    const property = open(value, shapes);
    const key = `${before}${name}`;
    const at = path === "" ? key : `${path}.${key}`;
    const items = open(property.items, shapes);
    const values = isObject(property.additionalProperties) ? open(property.additionalProperties, shapes) : {};
    const isRequired = list(schema.required).includes(name);
    const restart = RESTART.test(text(property.description));
    const follow = (shape: JsonObject, place: string): void => void inner.push({ shape, at: place, restart });
    const known = inner.length;
    if (path === "") {
      if (isObject(property.additionalProperties)) follow(values, `${at}.<name>`);
      else if (isObject(property.properties) || holdsObjects(property, shapes)) follow(property, at);
      return [];
    }
    if (isObject(property.properties)) {
      const isGiven = property.default !== undefined;
      if (path !== "gateway") return rowsOf(property, `${key}.`, path, inner, shapes, isGiven ? undefined : key);
      follow(property, at);
      return [];
    }
    if (holdsObjects(property, shapes)) {
      for (const kind of list(property.oneOf).map(object)) {
        const element = isObject(kind.items) ? open(kind.items, shapes) : open(kind.additionalProperties, shapes);
        if (isObject(element.properties) || holdsObjects(element, shapes))
          follow(element, isObject(kind.items) ? `${at}[]` : `${at}.<name>`);
      }
    }
    if (isObject(items.properties) || holdsObjects(items, shapes)) follow(items, `${at}[]`);
    if (isObject(values.properties) || holdsObjects(values, shapes)) follow(values, `${at}.<name>`);
    const needed = isRequired ? (within === undefined ? "required" : `required with \`${within}\``) : "";
    const inside = inner[known]?.at;
    return [{ ...rowOf(key, property, typeOf(value, shapes), needed), ...(inside === undefined ? {} : { inside }) }];
  });
}

function holdsObjects(schema: JsonObject, shapes: Shapes): boolean {
  return list(schema.oneOf).some((kind) => {
    const { properties, items, additionalProperties } = object(kind);
    const inside = [properties, open(items, shapes).properties, open(additionalProperties, shapes).properties];
    return inside.some(isObject) || list(open(items, shapes).oneOf).some((one) => isObject(object(one).properties));
  });
}

function open(value: Json | undefined, shapes: Shapes): JsonObject {
  const schema = object(value);
  if (typeof schema.$ref !== "string") return schema;
  const { $ref, ...beside } = schema;
  return { ...open(shapes[nameOf($ref as string)], shapes), ...beside };
}

function typeOf(value: Json | undefined, shapes: Shapes): string {
  const schema = object(value);
  const name = typeof schema.$ref === "string" ? nameOf(schema.$ref) : "";
  if (NOUNS[name]) return NOUNS[name];
  if (name !== "") return typeOf(open(schema, shapes), shapes);
  if (schema.const !== undefined) return code(schema.const);
  if (schema.enum !== undefined) return joined(list(schema.enum).map(code));
  if (schema.oneOf !== undefined) return joined(list(schema.oneOf).map((kind) => typeOf(kind, shapes)));
  return joined([schema.type].flat().map((type) => nounOf(text(type), schema, shapes)));
}

function nounOf(type: string, schema: JsonObject, shapes: Shapes): string {
  const { minimum, maximum } = schema;
  if (type === "array") {
    const items = typeOf(schema.items, shapes);
    return items.includes(" or ") && !items.startsWith("`true`") ? `list of (${items})` : `list of ${items}`;
  }
  if (type === "object") {
    const values = schema.additionalProperties;
    return isObject(values) ? `map of names to ${typeOf(values, shapes)}` : "object";
  }
  if (type === "boolean") return "`true` or `false`";
  if (type === "integer" || type === "number") {
    const noun = type === "integer" ? "whole number" : "number";
    if (minimum !== undefined && maximum !== undefined) return `${noun}, ${minimum} to ${maximum}`;
    return minimum === undefined ? noun : `${noun}, at least ${minimum}`;
  }
  return "text";
}

function rowOf(key: string, schema: JsonObject, type: string, needed: string): Row {
  const about = text(schema.description);
  return {
    key,
    type,
    default: schema.default === undefined ? needed : code(schema.default),
    restart: RESTART.test(about),
    about: aboutOf(about),
    example: list(schema.examples).slice(0, 1).map(code).join(""),
  };
}

function aboutOf(about: string): string {
  return about.replace(RESTART, "").trim();
}
function nameOf(ref: string): string {
  return texts([ref.split("/").at(-1) ?? ""])[0] ?? "";
}
function joined(types: readonly string[]): string {
  return [...new Set(types)].join(" or ");
}

/** A value as JSON5, on one line, as code. */
function code(value: Json): string {
  return `\`${json5(value)}\``;
}
function json5(value: Json | undefined): string {
  if (Array.isArray(value)) return `[${value.map(json5).join(", ")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const pairs = Object.entries(value).map(
    ([key, item]) => `${/^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key)}: ${json5(item)}`,
  );
  return pairs.length === 0 ? "{}" : `{ ${pairs.join(", ")} }`;
}

/** The page of the documentation. */
export function printConfiguration(root: JsonObject): string {
  const sections = configurationSections(root);
  const anchor = (title: string): string =>
    title
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, "")
      .replaceAll(" ", "-");
  const cell = (words: string): string => words.replaceAll("|", "\\|").replaceAll(/\s*\n\s*/g, " ");
  const tables = sections.map(({ title, about, rows }) => {
    const lines = rows.map(({ key, type: plain, default: usual, restart, about: what, example, inside }) => {
      const target =
        inside && sections.find((one) => one.title === inside || one.title.startsWith(`${inside} `))?.title;
      const type = target ? plain.replace(/\bobject\b/, `[object](#${anchor(target)})`) : plain;
      const more = example === "" ? "" : ` For example ${example}.`;
      return `| \`${key}\` | ${cell(type)} | ${cell(usual)} | ${restart ? "yes" : ""} | ${cell(what + more)} |`;
    });
    return [
      `## ${headingOf(title)}`,
      "",
      about,
      "",
      "| key | type | default | restart | description |",
      "|---|---|---|---|---|",
      ...lines,
      "",
    ].join("\n");
  });
  return `${INTRO}
${sections.map(({ title }) => `- [${headingOf(title)}](#${anchor(title)})`).join("\n")}

${tables.join("\n")}`;
}

export function headingOf(title: string): string {
  return title.replace(/^\S+/, "`$&`").replace(/(?<=type )\S+$/, "`$&`");
}

const INTRO = `# Configuration

<!-- Written by "npm run generate" from specs/config.schema.yaml and scripts/generate/configuration.ts; do not edit. -->

The gateway reads one file: \`gateway.json5\` in the folder where it starts, or the file named by \`--config\` or \`GATEWAY_CONFIG\`. The format is JSON5, JSON or YAML, depending on the file's extension. Only \`agents\` is required:

\`\`\`json5 gateway.json5
{
  gateway: {
    defaultAgent: "main",                  // required with two agents
    rest: { auth: { keys: [{ name: "ci", key: "\${REST_API_KEY}" }] } },
    rpc: { auth: { tokens: [{ name: "ops", token: "\${RPC_TOKEN}", permissions: "*" }] } },
  },
  webhooks: {
    token: [{ value: "\${WEBHOOK_TOKEN}", since: "2026-11-01" }],
    mappings: {
      "issue-opened": {
        match: { "body.action": "opened" },
        message: "New issue: {body.issue.title}",
        agent: "helper",
      },
    },
  },
  agents: {
    main: { backend: "echo", description: "Repeats each message." },
    helper: { backend: "echo", heartbeat: { every: "5m" } },
  },
  store: { type: "sqlite", path: "./gateway.db" },
}
\`\`\`

- **Secrets.** In any text \`\${NAME}\` is replaced by the environment variable NAME, which must be set and not empty. The value is text, so a reference cannot replace a number or a boolean; for the port, use GATEWAY_PORT. \`$\${\` is replaced by \`\${\`. A secret that looks like a reference in another form (\`$NAME\`, \`%NAME%\`) is refused.
- **The default agent.** With two agents or more, \`gateway.defaultAgent\` is required: this agent answers requests that do not name an agent.
- **Heartbeats.** Each agent handles its queued system events every 30 minutes, unless its \`heartbeat.every\` sets another interval. With \`off\`, events wait until an event with \`mode: now\` arrives.
- **Surfaces.** REST, RPC, webhooks and the console are on if they have a secret, unless their \`enabled\` is \`false\`.
- **Mistakes.** A file with an unknown key or a wrong value is refused. The gateway reports all mistakes together, each with its file, line, column and a correction.
- **Changes.** The gateway applies a changed file automatically, within a second and as a whole. If the file has a mistake, the gateway continues with the previous configuration. The tables mark the keys that need a restart.
- **Paths** are relative to the folder of the file.
- **Durations** are a number with \`ms\`, \`s\`, \`m\`, \`h\` or \`d\`, as \`"30m"\`. **Sizes** are a number of bytes, or a number with \`B\`, \`KiB\`, \`MiB\` or \`GiB\`, as \`"256KiB"\`.

## Environment variables

- \`GATEWAY_CONFIG\` names the configuration file, \`GATEWAY_HOST\` and \`GATEWAY_PORT\` override its address. Command-line options override all three.
- Every \`\${NAME}\` in the file: by convention \`REST_API_KEY\`, \`RPC_TOKEN\`, \`WEBHOOK_TOKEN\` and \`CONSOLE_TOKEN\`. A start without a configuration also uses these four variables, and generates those that are not set.
- \`LOG_FORMAT\` (\`pretty\` or \`json\`), \`LOG_LEVEL\` (\`debug\`, \`info\`, \`warn\` or \`error\`) and \`NO_COLOR\` are for the [log](operations.md#logs), \`OTEL_…\` for [traces](operations.md#traces).
- \`NODE_ENV=production\` makes the gateway refuse weak secrets on loopback too.
- The file \`gateway.env\` next to the configuration has lines \`NAME=value\`. It sets variables that are not set in the environment.
- Clients and commands read \`GATEWAY_URL\` and the tokens: see [the command line](cli.md#where-the-gateway-is).

## For editors

The schema in one file: [config.schema.json](../generated/config.schema.json). Put \`$schema: "./node_modules/agent-gateway/generated/config.schema.json"\` or its path at the top of the file, and your editor completes and validates the file.

## Sections
`;
