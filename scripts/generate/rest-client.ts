import type { Bundle } from "./bundle.ts";
import { key, literal } from "./json.ts";
import type { Operation } from "./operations.ts";
import { comment, header } from "./output.ts";
import { shapeOf } from "./schema.ts";
import { SpecError } from "./spec-files.ts";
import { sentName, sentShapes, typeOf } from "./types.ts";

const eventStream = "text/event-stream";

/** Prints the REST client: what each operation takes and answers, and where it is. */
export function printRestClient(operations: Operation[], bundle: Bundle): string {
  const callable = operations.filter(({ replies }) => replies.some(({ type }) => type !== eventStream));
  const streamed = callable.filter(({ stream }) => stream !== null);
  const resumed = operations.find(({ id }) => id === "turns.events");
  if (resumed === undefined)
    throw new SpecError("specs/openapi.yaml", "the client takes up lost streams by turns.events");
  const shapes = new Set<string>(["paths", "TurnEvent"]);
  const sent = sentShapes(bundle);
  const asSent = [...sent].map((shape) => `${sentName(shape)} as ${shape}`).sort();
  const lines = callable.map(
    (operation) =>
      `${comment(operation.summary, "  ")}  ${literal(operation.id)}: { call: ${printCall(operation, sent, shapes)}; reply: ${printReply(operation, shapes)} };`,
  );
  const rows = callable.map(({ id, method, path, body, replies }) => {
    const readAs = replies.some(({ type }) => type === null || type.endsWith("json")) ? "json" : "text";
    return `  ${literal(id)}: { method: ${literal(method)}, path: ${literal(path)}, readAs: ${literal(readAs)}${body?.required ? ", needsBody: true" : ""} },`;
  });
  return `${header("openapi.yaml")}
import createClient, { type Client } from "openapi-fetch";
import type { ${[...shapes].sort().join(", ")} } from "../rest-types.ts";
import { type FollowOptions, followTurn } from "./follow-turn.ts";
import { errorOf } from "./problem-error.ts";
import { callOperation } from "./rest-calls.ts";

export type * from "../rest-types.ts";
// As a caller writes them: what has a default may be left out.
export type { ${asSent.join(", ")} } from "../rest-types.ts";
export { ConnectionError } from "./connection-error.ts";
export { ProblemError } from "./problem-error.ts";

/** The parameters and the answer of each operation. */
export interface RestOperations {
${lines.join("\n")}
}

/** Where each operation is. */
const table = {
${rows.join("\n")}
} as const satisfies Record<keyof RestOperations, { method: string; path: keyof paths; readAs: "json" | "text"; needsBody?: true }>;

export interface RestClientOptions {
  /** For instance \`http://127.0.0.1:18789\`. */
  baseUrl: string;
  /** A REST key, or the token of whatever else is called. */
  key: string;
  fetch?: (request: Request) => Promise<Response>;
}

export interface CallOptions {
  signal?: AbortSignal;
}

type Call<Operation extends keyof RestOperations> = RestOperations[Operation]["call"];
type Arguments<Operation extends keyof RestOperations> =
  Record<never, never> extends Call<Operation>
    ? [call?: Call<Operation>, options?: CallOptions]
    : [call: Call<Operation>, options?: CallOptions];

/** The operations that can answer while the reply is written. */
export type StreamedOperation = ${streamed.map(({ id }) => literal(id)).join(" | ")};

export interface RestClient {
  /** openapi-fetch by path and method, for what \`call\` does not show. It throws a ProblemError where the gateway answers with a problem. */
  http: Client<paths>;
  /** Calls an operation by its name. Throws a ProblemError if the gateway refuses or fails. */
  call<Operation extends keyof RestOperations>(operation: Operation, ...rest: Arguments<Operation>): Promise<RestOperations[Operation]["reply"]>;
  /**
   * Calls an operation with \`stream: true\` and gives its events while the reply is written. A stream that is lost goes on
   * behind its last event.
   */
  stream<Operation extends StreamedOperation>(operation: Operation, call: Call<Operation>, options?: FollowOptions): AsyncGenerator<TurnEvent>;
  /** The events of a turn, from its start or behind an event, until it ends. */
  events(turnId: string, options?: FollowOptions & { after?: string }): AsyncGenerator<TurnEvent>;
}

/** A client for the gateway's REST operations. */
export function createRestClient({ baseUrl, key, fetch }: RestClientOptions): RestClient {
  const http = createClient<paths>({
    baseUrl,
    headers: { authorization: \`Bearer \${key}\` },
    ...(fetch === undefined ? {} : { fetch }),
  });
  http.use({
    async onResponse({ response }) {
      if (!response.ok) throw await errorOf(response);
    },
  });

  const follow = (turnId: string, after?: string, signal?: AbortSignal) =>
    callOperation(http, { operation: ${literal(resumed.id)}, baseUrl, place: { method: ${literal(resumed.method)}, path: ${literal(resumed.path)}, readAs: "events" } }, {
      path: { turn_id: turnId },
      ...(after === undefined ? {} : { headers: { "Last-Event-ID": after } }),
    }, signal) as Promise<Response>;

  return {
    http,
    call: (async (operation: keyof RestOperations, call: object = {}, { signal }: CallOptions = {}) =>
      callOperation(http, { operation, baseUrl, place: table[operation] }, call, signal)) as RestClient["call"],
    stream: (operation, call, options = {}) =>
      followTurn(
        (from, signal) =>
          from === undefined
            ? (callOperation(http, { operation, baseUrl, place: table[operation] && { ...table[operation], readAs: "events" } }, { ...call, body: call?.body && { ...call.body, stream: true } }, signal) as Promise<Response>)
            : follow(from.turnId, from.after, signal),
        options,
      ),
    events: (turnId, { after, ...options } = {}) =>
      followTurn((from, signal) => follow(turnId, from?.after ?? after, signal), options),
  };
}
`;
}

/** As the caller writes it: header names as the contract has them, what has a default may be left out. */
function printCall({ id, parameters, body }: Operation, sent: Set<string>, shapes: Set<string>): string {
  const parts = (["path", "query", "header"] as const).flatMap((place) => {
    const mine = parameters.filter((parameter) => parameter.in === place);
    const fields = mine.map(({ name, required, schema }) => {
      const path = `NonNullable<operations[${literal(id)}]["parameters"][${literal(place)}]>[${literal(name)}]`;
      return `${key(name)}${required ? "" : "?"}: ${typeOf(schema, path, shapes)}`;
    });
    const optional = mine.some(({ required }) => required) ? "" : "?";
    return fields.length > 0 ? [`${place === "header" ? "headers" : place}${optional}: { ${fields.join("; ")} }`] : [];
  });
  if (body !== null) {
    const name = shapeOf(body.schema) as string;
    const shape = sent.has(name) ? sentName(name) : name;
    shapes.add(shape);
    parts.push(`body${body.required ? "" : "?"}: ${shape}`);
  }
  return parts.length > 0 ? `{ ${parts.join("; ")} }` : "Record<never, never>";
}

function printReply({ id, replies, answers }: Operation, shapes: Set<string>): string {
  const types = replies.flatMap(({ as, status, type }) => {
    // The client asks for no page.
    if (type === eventStream || as === "page") return [];
    if (type === null) return ["void"];
    const { schema } = answers.find((answer) => answer.status === status && answer.type === type) ?? {};
    return [typeOf(schema, `operations[${literal(id)}]["responses"][${status}]["content"][${literal(type)}]`, shapes)];
  });
  return [...new Set(types)].join(" | ");
}
