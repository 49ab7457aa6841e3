import { type Bundle, resolve } from "./bundle.ts";
import { isObject, type Json, type JsonObject, list, literal, object, text, texts } from "./json.ts";
import { header } from "./output.ts";
import { mapSchema, type Schema, schemasIn, shapeOf } from "./schema.ts";
import { SpecError } from "./spec-files.ts";

/** The operation or method that a tool calls. The arguments named in `path` and `query` go there; if `body` is true, the others are the request body. */
type Source =
  | { surface: "rest"; operation: string; path: string[]; query: string[]; body: boolean }
  | { surface: "rpc"; method: string };

/** One tool of the MCP door: an operation or a method with `x-mcp`. */
export type Tool = {
  name: string;
  title: string;
  description: string;
  hint: string;
  /** False unless the document says that no text of senders or agents is in its answers. */
  isTrusted: boolean;
  from: Source;
  scope: string;
  /** Objects, with references to `shapes`. */
  input: JsonObject;
  output: JsonObject;
  /** The shapes of the document that the tool comes from. */
  shapes: JsonObject;
};

type Refuse = (message: string) => never;
type Argument = { name: string; schema: Schema; required: boolean };

const hints = ["read", "write", "destructive"];
/** A longer list of tools confuses models. */
const MOST_OPERATOR_TOOLS = 12;
/** The keywords of a body that the arguments of a tool can express. */
const bodyKeywords = ["type", "additionalProperties", "required", "properties", "title", "description", "examples"];

/** The tools, in the order of the documents. Their names are unique. */
export function readTools(openapi: Bundle, openrpc: Bundle): Tool[] {
  const tools: Tool[] = [];
  const add = (where: string, node: JsonObject, read: (refuse: Refuse) => ReadTool): void => {
    if (node["x-mcp"] === undefined) return;
    const refuse: Refuse = (message) => {
      throw new SpecError(where, `x-mcp: ${message}`);
    };
    const tool = readTool(node, read(refuse), refuse);
    if (tools.some(({ name }) => name === tool.name)) refuse(`another tool is called ${tool.name}`);
    tools.push(tool);
    if (tools.filter(({ scope }) => scope === "admin").length > MOST_OPERATOR_TOOLS)
      refuse(`there are at most ${MOST_OPERATOR_TOOLS} tools for operators`);
  };
  for (const [path, item] of Object.entries(object(openapi.document.paths)))
    for (const [method, node] of Object.entries(object(item))) {
      const where = `specs/openapi.yaml, ${method.toUpperCase()} ${path}`;
      const shared = list(object(item).parameters);
      add(where, object(node), (refuse) => readOperation(openapi, method, object(node), shared, refuse));
    }
  for (const node of list(openrpc.document.methods).map(object))
    add(`specs/openrpc.json, ${text(node.name)}`, node, (refuse) => readMethod(openrpc, node, refuse));
  return tools;
}

type ReadTool = Pick<Tool, "from" | "scope" | "input" | "output" | "shapes">;

function readTool(node: JsonObject, read: ReadTool, refuse: Refuse): Tool {
  const { name, title, description, hint, trusted = false, scope = read.scope } = object(node["x-mcp"]);
  if (!/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(text(name))) refuse(`name must be snake_case, not ${literal(name)}`);
  if (/^(ask|skill)_/.test(text(name))) refuse(`${text(name)} may be the name of an agent's or a skill's tool`);
  if (text(title) === "") refuse("title is missing");
  if (!hints.includes(text(hint))) refuse(`hint must be one of ${hints.join(", ")}`);
  if (scope !== read.scope && scope !== "admin") refuse("scope may only be admin, for an operation with chat");
  if (typeof trusted !== "boolean") refuse("trusted must be true or false");
  return {
    ...read,
    name: text(name),
    title: text(title),
    description: text(description) || text(node.summary),
    hint: text(hint),
    isTrusted: trusted === true,
    scope: text(scope),
  };
}

function readOperation(
  { components }: Bundle,
  method: string,
  node: JsonObject,
  shared: Json[],
  refuse: Refuse,
): ReadTool {
  if (node["x-surface"] !== "rest") refuse("only operations of REST are tools");
  const scope = text(node["x-scope"]);
  if (scope !== "chat" && scope !== "admin") refuse(`an operation with the scope ${scope} is not a tool`);
  if (method === "get" && object(node["x-mcp"]).hint !== "read") refuse("the hint of a GET must be `read`");
  const parameters = [...shared, ...list(node.parameters)].map((one) => resolve(one, components));
  // A header is for clients of HTTP, not for a model.
  if (parameters.some((one) => one.in === "header" && one.required === true)) refuse("it needs a header");
  const argumentsIn = (place: string) => parameters.filter((one) => one.in === place).map(argumentOf);
  const [path, query] = [argumentsIn("path"), argumentsIn("query")];
  const requestBody = resolve(node.requestBody, components);
  const body = readBody(requestBody, components, refuse);
  const answers = Object.entries(object(node.responses)).flatMap(([status, response]) => {
    const media = object(resolve(response, components).content)["application/json"];
    return Number(status) < 300 && media !== undefined ? [object(media).schema] : [];
  });
  const names = (among: Argument[]) => among.map(({ name }) => name);
  return {
    from: {
      surface: "rest",
      operation: text(node.operationId),
      path: names(path),
      query: names(query),
      body: node.requestBody !== undefined,
    },
    scope,
    input: inputOf([...path, ...query, ...body], refuse),
    output: outputOf(answers, components, refuse),
    shapes: components.schemas ?? {},
  };
}

function readMethod({ components }: Bundle, node: JsonObject, refuse: Refuse): ReadTool {
  return {
    from: { surface: "rpc", method: text(node.name) },
    scope: "admin",
    input: inputOf(
      list(node.params).map((param) => argumentOf(resolve(param, components))),
      refuse,
    ),
    output: outputOf([resolve(node.result, components).schema], components, refuse),
    shapes: components.schemas ?? {},
  };
}

function argumentOf({ name, required, schema = true, description }: JsonObject): Argument {
  return {
    name: text(name),
    schema: isObject(schema) && description ? { description, ...schema } : (schema as Schema),
    required: required === true,
  };
}

/** The fields of a body. Only a closed object without further rules can be merged with parameters. */
function readBody(body: JsonObject, components: Bundle["components"], refuse: Refuse): Argument[] {
  const media = object(body.content)["application/json"];
  if (media === undefined) return Object.keys(body).length > 0 ? refuse("its body is not JSON") : [];
  const schema = resolve(object(media).schema, components);
  const other = Object.keys(schema).find((keyword) => !bodyKeywords.includes(keyword));
  if (other !== undefined) refuse(`its arguments cannot express "${other}" of the body`);
  if (schema.type !== "object" || schema.additionalProperties !== false) refuse("its body is not a closed object");
  const required = texts(schema.required);
  if (body.required !== true && required.length > 0) refuse("an optional body has no required fields");
  return Object.entries(object(schema.properties)).map(([name, field]) => ({
    name,
    schema: field as Schema,
    required: required.includes(name),
  }));
}

function inputOf(given: Argument[], refuse: Refuse): JsonObject {
  const twice = given.find(({ name }, index) => given.findIndex((other) => other.name === name) !== index);
  if (twice !== undefined) refuse(`two of its arguments are called ${twice.name}`);
  const required = given.filter((one) => one.required).map(({ name }) => name);
  return {
    type: "object",
    additionalProperties: false,
    ...(required.length > 0 && { required }),
    properties: Object.fromEntries(given.map(({ name, schema }) => [name, schema])),
  };
}

/** The answer on success. If several statuses have one, it is any of them. */
function outputOf(answers: (Json | undefined)[], components: Bundle["components"], refuse: Refuse): JsonObject {
  const [first, ...others] = answers.map((answer) => {
    const schema = resolve(answer, components);
    return schema.type === "object" ? schema : refuse("its answer is not a JSON object");
  });
  if (first === undefined) return refuse("it has no answer in JSON");
  return others.length === 0 ? first : { type: "object", anyOf: answers as Json[] };
}

/** Keywords of OpenAPI, and those that only people read. An example would be repeated by models. */
const dropped = ["$comment", "title", "example", "examples", "discriminator", "patternErrorMessage"];
/** Omitted from results: the documents have them, and every client would load them with the list of tools. */
const droppedFromResults = [...dropped, "description", "default"];

/** Prints the tools. Shapes of several tools are printed once. */
export function printTools(tools: Tool[]): string {
  const [inputs, outputs] = [new Map<string, string>(), new Map<string, string>()];
  const print = (schema: JsonObject, { shapes, name: tool }: Tool, out: boolean): string => {
    const form = (one: Json) => literal(standalone(one, out ? droppedFromResults : dropped));
    const names = namesIn(schema, shapes);
    const table = out ? outputs : inputs;
    for (const name of names) {
      const printed = form(shapes[name] as Json);
      if ((table.get(name) ?? printed) !== printed)
        throw new SpecError(`the tool ${tool}`, `openapi.yaml and openrpc.json have different shapes ${name}`);
      table.set(name, printed);
    }
    const defs = `$defs: pick(${out ? "outputs" : "inputs"}, ${names.map(literal).join(", ")})`;
    return names.length === 0 ? form(schema) : `{ ...${form(schema)}, ${defs} }`;
  };
  const printed = tools.map((tool) => {
    const { name, title, description, hint, isTrusted, from, scope, input, output } = tool;
    const fields = Object.entries({ name, title, description, hint, isTrusted, from, scope });
    const lines = fields.map(([field, value]) => `    ${field}: ${literal(value)},\n`).join("");
    return `  {\n${lines}    inputSchema: ${print(input, tool, false)},\n    outputSchema: ${print(output, tool, true)},\n  },`;
  });
  const table = (name: string, shapes: Map<string, string>) => {
    const lines = [...shapes].sort(([a], [b]) => (a < b ? -1 : 1)).map(([shape, form]) => `  ${shape}: ${form},`);
    return `const ${name}: Record<string, object> = {\n${lines.join("\n")}\n};`;
  };
  return `${header("openapi.yaml", "openrpc.json")}
/** A tool of the MCP door, from \`x-mcp\` of an operation or a method. */
export type McpSource = {
  name: string;
  title: string;
  description: string;
  hint: "read" | "write" | "destructive";
  /** Its answers have no text of senders or agents. */
  isTrusted: boolean;
  /** The place of its body. The names in \`path\` and \`query\` are arguments; with \`body\`, all other arguments are the body. */
  from:
    | { surface: "rest"; operation: string; path: string[]; query: string[]; body: boolean }
    | { surface: "rpc"; method: string };
  scope: "chat" | "admin";
  /** JSON Schema 2020-12, with all that they refer to in \`$defs\`. */
  inputSchema: object;
  outputSchema: object;
};

function pick(shapes: Record<string, object>, ...names: string[]): Record<string, object> {
  return Object.fromEntries(names.map((name) => [name, shapes[name] ?? {}]));
}

${table("inputs", inputs)}

${table("outputs", outputs)}

export const mcpTools: readonly McpSource[] = [
${printed.join("\n")}
];
`;
}

/** The table of the tools for operators in docs/mcp.md. */
export function printToolTable(tools: Tool[]): string {
  const rows = tools
    .filter(({ scope }) => scope === "admin")
    .map(({ name, title, hint, from }) => {
      const source = from.surface === "rest" ? from.operation : from.method;
      return `| \`${name}\` | ${hint === "read" ? "`read`" : "`write`"} | ${title} (\`${source}\`) |`;
    });
  return ["| tool | `operator` | |", "|---|---|---|", ...rows].join("\n");
}

/** The names of all shapes that a schema refers to, directly or through other shapes, in alphabetical order. */
function namesIn(schema: Json | undefined, shapes: JsonObject, found = new Set<string>()): string[] {
  for (const inner of schemasIn(schema)) {
    const name = shapeOf(inner);
    if (name === undefined || found.has(name)) continue;
    found.add(name);
    namesIn(shapes[name], shapes, found);
  }
  return [...found].sort();
}

function standalone(schema: Json, without: string[]): Json {
  return mapSchema(schema, (inner) => {
    const shape = shapeOf(inner);
    const kept = Object.entries(inner).filter(([keyword]) => !without.includes(keyword));
    return { ...Object.fromEntries(kept), ...(shape !== undefined && { $ref: `#/$defs/${shape}` }) };
  });
}
