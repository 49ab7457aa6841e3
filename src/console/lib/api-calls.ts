import { type Identity, type Right, whyNot } from "./identity.ts";
import { fieldOf, isObject, type SchemaField } from "./schema-form.ts";

type Json = Readonly<Record<string, unknown>>;

/** A parameter of a path, a query or a header. */
export type ApiParam = SchemaField & { in: "path" | "query" | "header" };

/** An operation of REST or a method of RPC, as its spec describes it. */
export type ApiCall = {
  id: string;
  surface: "rest" | "rpc";
  method: string;
  path: string;
  group: string;
  summary: string;
  description: string;
  params: readonly ApiParam[];
  /** Initial bodies; empty if it has no body. */
  bodies: readonly { name: string; text: string }[];
  /** The names of the security schemes, any of which is sufficient. Empty: no authentication. */
  identities: readonly string[];
};

function objectOf(value: unknown): Json {
  return isObject(value) ? value : {};
}
function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}
function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2);
}

/** Follows `$ref`s to where they lead in the document. */
function resolve(spec: Json, node: unknown, depth = 8): Json {
  const ref = objectOf(node).$ref;
  if (typeof ref !== "string" || depth === 0) return objectOf(node);
  const found = ref
    .replace(/^#\//, "")
    .split("/")
    .reduce<unknown>((at, step) => objectOf(at)[step.replaceAll("~1", "/").replaceAll("~0", "~")], spec);
  return resolve(spec, found, depth - 1);
}

const METHODS = ["get", "post", "put", "patch", "delete"] as const;

/** Every operation of an OpenAPI document. */
export function restCalls(spec: Json): ApiCall[] {
  return Object.entries(objectOf(spec.paths)).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = objectOf(item)[method];
      return isObject(operation) ? [restCall(spec, { path, method, operation, item: objectOf(item) })] : [];
    }),
  );
}

type Place = { path: string; method: string; operation: Json; item: Json };

function restCall(spec: Json, { path, method, operation, item }: Place): ApiCall {
  const params = [...listOf(item.parameters), ...listOf(operation.parameters)].map((given): ApiParam => {
    const param = resolve(spec, given);
    const schema = resolve(spec, param.schema);
    const examples = [param.example ?? schema.example ?? listOf(schema.examples)[0]].filter((one) => one !== undefined);
    const described = { ...schema, description: param.description, title: undefined, examples };
    const field = fieldOf(textOf(param.name), described, param.required === true);
    // A path, a query or a header is one line.
    const kind = field.kind === "long" ? "text" : field.kind;
    return { ...field, kind, limits: "", in: param.in as ApiParam["in"] };
  });
  const content = objectOf(objectOf(resolve(spec, operation.requestBody).content)["application/json"]);
  const examples = Object.entries(objectOf(content.examples)).map(([name, given]) => {
    const example = resolve(spec, given);
    return { name: textOf(example.summary) || name, text: pretty(example.value) };
  });
  const alone = content.example === undefined ? [] : [{ name: "Example", text: pretty(content.example) }];
  const bodies = [...examples, ...alone];
  return {
    id: textOf(operation.operationId),
    surface: "rest",
    method: method.toUpperCase(),
    path,
    params,
    group: textOf(listOf(operation.tags)[0]),
    summary: textOf(operation.summary),
    description: textOf(operation.description),
    bodies: bodies.length === 0 && isObject(content.schema) ? [{ name: "Empty", text: "{}" }] : bodies,
    identities: listOf(operation.security ?? spec.security).flatMap((one) => Object.keys(objectOf(one))),
  };
}

/** Every method of an OpenRPC document, as a call over HTTP. */
export function rpcCalls(spec: Json): ApiCall[] {
  return listOf(spec.methods).map((given): ApiCall => {
    const method = resolve(spec, given);
    const name = textOf(method.name);
    const bodies = listOf(method.examples).map((one) => {
      const example = resolve(spec, one);
      const params = listOf(example.params).map((param) => resolve(spec, param));
      const sent = Object.fromEntries(params.map(({ name: key, value }) => [textOf(key), value]));
      return {
        name: textOf(example.description) || textOf(example.name),
        text: pretty({ jsonrpc: "2.0", id: 1, method: name, params: sent }),
      };
    });
    return {
      id: name,
      surface: "rpc",
      method: "POST",
      path: "/rpc",
      group: name.split(".")[0] ?? "",
      summary: textOf(method.summary),
      description: textOf(method.description),
      params: [],
      bodies: bodies.length > 0 ? bodies : [{ name: "Empty", text: pretty({ jsonrpc: "2.0", id: 1, method: name }) }],
      identities: ["rpcToken"],
    };
  });
}

/** The reason why the signed-in identity may not call it; undefined if it may. */
export function whyNotCallable({ identities, surface, id }: ApiCall, who: Identity | undefined): string | undefined {
  if (identities.length === 0 || id === "identity.get") return undefined;
  if (surface === "rpc") return whyNot(who, id as Right);
  if (id.startsWith("hooks."))
    return "Needs the webhook token or a signature. Use the Webhooks page to send a test webhook.";
  if (identities.includes("signInCode"))
    return "Needs a sign-in code instead of a token. codes.create creates a code; the console redeems it when its link is opened.";
  if (identities.includes("restKey")) return whyNot(who, "rest");
  return whyNot(who, identities.includes("rpcToken") ? "gateway.stream" : "keys");
}

const READING = /\.(?:list|get|status|health|info|stats|dryRun|backtest)$/;

/** The effect of a call that does more than read, in words for a question before it is sent. */
export function effectOfCall(call: ApiCall): string | undefined {
  const { method, id, surface } = call;
  if (READING.test(id) || (surface === "rest" && method === "GET")) return undefined;
  return isRemoving(call)
    ? "This call changes the running gateway and cannot be undone."
    : "This call changes the running gateway or starts work.";
}

/** Says if the effect cannot be undone. */
export function isRemoving({ method, id }: ApiCall): boolean {
  return method === "DELETE" || /delete|revoke|cancel/i.test(id);
}

export type ApiRequest = { method: string; path: string; headers: Record<string, string>; body: string | undefined };

/** The request that a filled form makes, without its token; or what is missing. */
export function requestOf(
  { method, path, params, bodies }: ApiCall,
  values: Readonly<Record<string, string>>,
  body: string,
): ApiRequest | { missing: string } {
  const missing = params.find(({ name, isRequired }) => isRequired && !values[name]);
  if (missing) return { missing: missing.name };
  let filled = path;
  const query = new URLSearchParams();
  const headers: Record<string, string> = bodies.length > 0 ? { "content-type": "application/json" } : {};
  for (const { name, in: place, kind } of params) {
    const typed = values[name];
    if (!typed) continue;
    // A choice is JSON.
    const value = kind === "choice" ? String(JSON.parse(typed)) : typed;
    if (place === "path") filled = filled.replaceAll(`{${name}}`, () => encodeURIComponent(value));
    else if (place === "query") query.append(name, value);
    else headers[name.toLowerCase()] = value;
  }
  const asked = query.toString();
  return { method, path: filled + (asked && `?${asked}`), headers, body: bodies.length > 0 ? body : undefined };
}
