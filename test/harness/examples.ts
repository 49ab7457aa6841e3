import openapi from "#generated/openapi.json" with { type: "json" };
import { type Operation, routes } from "#generated/routes.ts";
import { routeOf } from "./rest.ts";

// Readers of the contract try its examples first: each request is sent, and each reply is one that was received.

type Media = { examples?: Record<string, { value?: unknown; $ref?: string }> };
export type Example = { operation: Operation; status: string; type: string; name: string; value: unknown };

function follow(value: unknown): unknown {
  const { $ref } = (value ?? {}) as { $ref?: string };
  if ($ref === undefined) return value;
  const keys = $ref.split("/").slice(1);
  return follow(keys.reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], openapi));
}
function examplesOf(operation: Operation, status: string, content: Record<string, Media> = {}): Example[] {
  return Object.entries(content).flatMap(([type, { examples = {} }]) =>
    Object.entries(examples).map(([name, example]) => {
      return { operation, status, type, name, value: (follow(example) as { value: unknown }).value };
    }),
  );
}

type Described = { requestBody?: unknown; responses: Record<string, unknown> };
function described(operation: Operation): Described {
  const { path, method } = routeOf(operation);
  return (openapi.paths as unknown as Record<string, Record<string, Described>>)[path]?.[
    method.toLowerCase()
  ] as Described;
}
function contentOf(holder: unknown) {
  return (follow(holder) as { content?: Record<string, Media> } | undefined)?.content;
}

/** The operations with one of these paths, or below one of them. */
export function operationsAt(...paths: readonly string[]): Operation[] {
  return routes
    .filter(({ path }) => paths.some((start) => `${path}/`.startsWith(`${start}/`)))
    .map((route) => route.operation);
}

export function requestsOf(operations: readonly Operation[]): Example[] {
  return operations.flatMap((operation) =>
    examplesOf(operation, "request", contentOf(described(operation).requestBody)),
  );
}
export function repliesOf(operations: readonly Operation[]): Example[] {
  return operations.flatMap((operation) =>
    Object.entries(described(operation).responses)
      .filter(([status]) => Number(status) < 300)
      .flatMap(([status, response]) => examplesOf(operation, status, contentOf(response))),
  );
}

/** A reply with its changing values replaced. */
export function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value)
      .replaceAll(/\b(msg|turn|key|dlv|evt|req)_[0-9A-HJKMNP-TV-Z]{26}/g, "$1_id")
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "a time")
      .replaceAll(/sha256:[0-9a-f]{64}/g, "sha256:hash")
      .replaceAll(/"gw_[\w-]+"/g, '"gw_secret"'),
  );
}

export function nameOf({ operation, status, type, name }: Example) {
  return `${operation} ${status} ${type} ${name}`;
}
