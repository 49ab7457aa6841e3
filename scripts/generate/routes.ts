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
  /** As the contract writes it: \`{turn_id}\` stands for a part that varies. */
  path: string;
  /** The scope that a REST key needs; \`console\` is the console's token alone. Null where no REST key is asked for. */
  scope: "chat" | "admin" | "console" | null;
  /** Every error that it can answer with. */
  errors: readonly ErrorName[];
  /** Takes \`Idempotency-Key\` and answers \`Idempotent-Replayed\`. */
  idempotent: boolean;
  /** The key of \`limits\` in the configuration that bounds its body; null where it takes none. */
  bodyLimit: "restBody" | "webhookBody" | null;
  /** Must have a body. */
  needsBody: boolean;
  /** Can answer with a stream of events. */
  stream: boolean;
  /** How each reply of its handler is sent; the type is null where nothing is in the body. */
  replies: Readonly<Record<string, { status: number; type: string | null }>>;
}

export const routes = [
${routes.join("\n")}
] as const satisfies readonly Route[];

export type Operation = (typeof routes)[number]["operation"];
`;
}
