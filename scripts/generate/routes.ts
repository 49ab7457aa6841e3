import { key, literal } from "./json.ts";
import type { Operation } from "./operations.ts";
import { header } from "./output.ts";

/** Prints what the server needs to know of each operation before it is called. */
export function printRoutes(operations: Operation[]): string {
  const routes = operations.map(
    (route) => `  {
    operation: ${literal(route.id)},
    surface: ${literal(route.surface)},
    method: ${literal(route.method.toUpperCase())},
    path: ${literal(route.path)},
    scope: ${literal(route.scope)},
    errors: [${route.errors.map(literal).join(", ")}],
    idempotent: ${route.idempotent},
    bodyLimit: ${literal(route.bodyLimit)},
    needsBody: ${route.body?.required === true},
    stream: ${route.stream !== null},
    replies: { ${route.replies.map(({ as, status, type }) => `${key(as)}: { status: ${status}, type: ${literal(type)} }`).join(", ")} },
  },`,
  );
  return `${header("openapi.yaml")}
import type { ErrorName } from "./errors.ts";

export interface Route {
  operation: string;
  surface: "rest" | "openai" | "hooks" | "public";
  method: "GET" | "PUT" | "POST" | "PATCH" | "DELETE";
  /** In the contract's form: \`{turn_id}\` is a parameter. */
  path: string;
  /** The required scope of a REST key; \`console\` is only the console's token. Null if no REST key is required. */
  scope: "chat" | "admin" | "console" | null;
  /** All of its errors. */
  errors: readonly ErrorName[];
  /** Accepts \`Idempotency-Key\` and returns \`Idempotent-Replayed\`. */
  idempotent: boolean;
  /** The key of \`limits\` in the configuration for its body; null if it has none. */
  bodyLimit: "restBody" | "webhookBody" | null;
  /** Requires a body. */
  needsBody: boolean;
  /** Can answer with a stream of events. */
  stream: boolean;
  /** The status and type of each reply of its handler; the type is null for an empty body. */
  replies: Readonly<Record<string, { status: number; type: string | null }>>;
}

export const routes = [
${routes.join("\n")}
] as const satisfies readonly Route[];

export type Operation = (typeof routes)[number]["operation"];
`;
}
