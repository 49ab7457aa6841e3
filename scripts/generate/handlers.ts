import { type Json, key, literal } from "./json.ts";
import type { Operation, Reply } from "./operations.ts";
import { comment, header } from "./output.ts";
import { refTo } from "./schema.ts";
import { typeOf } from "./types.ts";

/** Prints the interface that the handlers of one surface satisfy: an operation without a body does not compile. */
export function printHandlers(surface: "rest" | "openai" | "hooks", operations: Operation[]): string {
  const mine = operations.filter((operation) => operation.surface === surface);
  const prefix = { rest: "Rest", openai: "OpenAi", hooks: "Hooks" }[surface];
  const isAtOnce = surface === "hooks";
  const shapes = new Set<string>();
  const name: Name = (schema, path) => typeOf(schema, path, shapes);
  const calls = mine.map((operation) => `  ${literal(operation.id)}: ${printCall(operation, name)};`);
  const replies = mine.map((operation) => `  ${literal(operation.id)}: ${printReplies(operation, name)};`);
  const answer = isAtOnce ? "Answer" : "Promise";
  const handlers = mine.map(
    ({ id, summary }) =>
      `${comment(summary, "  ")}  ${literal(id)}: (call: ${prefix}Calls[${literal(id)}], ctx: Ctx) => ${answer}<${prefix}Replies[${literal(id)}]>;`,
  );
  const body = `/** What each operation is called with: its parameters and body, checked, with defaults. Headers are in small letters, as Node has them. */
export interface ${prefix}Calls {
${calls.join("\n")}
}

/** The answer of each operation. \`as\` selects one of several kinds. */
export interface ${prefix}Replies {
${replies.join("\n")}
}

/** One body for each operation${isAtOnce ? "; it may answer at once" : ""}. \`Ctx\` is the context that the server adds to the call. */
export interface ${prefix}Handlers<Ctx> {
${handlers.join("\n")}
}

${isAtOnce ? "type Answer<Reply> = Reply | Promise<Reply>;\n\n" : ""}export type ${prefix}Operation = keyof ${prefix}Handlers<unknown>;
`;
  const imported = [...shapes].sort();
  const exported = imported.filter((shape) => shape !== "operations");
  return `${header("openapi.yaml")}
import type { ${imported.join(", ")} } from "./rest-types.ts";

export type { ${exported.join(", ")} };

${body}`;
}

type Name = (schema: Json | undefined, path: string) => string;

function printCall({ id, parameters, body }: Operation, name: Name): string {
  const parts = (["path", "query", "header"] as const).flatMap((place) => {
    const fields = parameters
      .filter((parameter) => parameter.in === place)
      .map(({ name: field, required, schema }) => {
        const path = `NonNullable<operations[${literal(id)}]["parameters"][${literal(place)}]>[${literal(field)}]`;
        const present = required || "default" in schema;
        const type = present ? name(schema, `NonNullable<${path}>`) : name(schema, path);
        return `${key(place === "header" ? field.toLowerCase() : field)}${present ? "" : "?"}: ${type}`;
      });
    return fields.length > 0 ? [`${place === "header" ? "headers" : place}: { ${fields.join("; ")} }`] : [];
  });
  if (body !== null) {
    const content = `NonNullable<operations[${literal(id)}]["requestBody"]>["content"][${literal(body.type)}]`;
    parts.push(`body: ${name(body.schema, content)}`);
  }
  return parts.length > 0 ? `{ ${parts.join("; ")} }` : "Record<never, never>";
}

function printReplies({ id, replies, answers, stream, idempotent }: Operation, name: Name): string {
  const body = ({ as, status, type }: Reply): string => {
    if (type === null) return "void";
    if (as === "events" && stream !== null) return `AsyncIterable<${name(refTo(stream), "")}>`;
    const answer = answers.find((other) => other.status === status && other.type === type);
    return name(answer?.schema, `operations[${literal(id)}]["responses"][${status}]["content"][${literal(type)}]`);
  };
  const [only] = replies;
  if (only !== undefined && replies.length === 1 && !idempotent && stream === null) return body(only);
  const replayed = idempotent ? "; replayed: boolean" : "";
  return replies
    .map((reply) => `{ as: ${literal(reply.as)}${reply.type === null ? "" : `; body: ${body(reply)}`}${replayed} }`)
    .join(" | ");
}
