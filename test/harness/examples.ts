import openapi from "#generated/openapi.json" with { type: "json" };
import { type Operation, routes } from "#generated/routes.ts";
import { routeOf } from "./rest.ts";

// The examples of the contract are what its readers try first: each request is sent, and each reply is one that was got.

type Media = { examples?: Record<string, { value?: unknown; $ref?: string }> };
export type Example = { operation: Operation; status: string; type: string; name: string; value: unknown };

const follow = (value: unknown): unknown => {
  const { $ref } = (value ?? {}) as { $ref?: string };
  if ($ref === undefined) return value;
  const keys = $ref.split("/").slice(1);
  return follow(keys.reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], openapi));
};
const examplesOf = (operation: Operation, status: string, content: Record<string, Media> = {}): Example[] =>
  Object.entries(content).flatMap(([type, { examples = {} }]) =>
    Object.entries(examples).map(([name, example]) => {
      return { operation, status, type, name, value: (follow(example) as { value: unknown }).value };
    }),
  );

type Described = { requestBody?: unknown; responses: Record<string, unknown> };
const described = (operation: Operation): Described => {
  const { path, method } = routeOf(operation);
  return (openapi.paths as unknown as Record<string, Record<string, Described>>)[path]?.[
    method.toLowerCase()
  ] as Described;
};
const contentOf = (holder: unknown) => (follow(holder) as { content?: Record<string, Media> } | undefined)?.content;

/** The operations whose path is one of these, or begins with it and goes on. */
export const operationsAt = (...paths: readonly string[]): Operation[] =>
  routes
    .filter(({ path }) => paths.some((start) => `${path}/`.startsWith(`${start}/`)))
    .map((route) => route.operation);

export const requestsOf = (operations: readonly Operation[]): Example[] =>
  operations.flatMap((operation) => examplesOf(operation, "request", contentOf(described(operation).requestBody)));
export const repliesOf = (operations: readonly Operation[]): Example[] =>
  operations.flatMap((operation) =>
    Object.entries(described(operation).responses)
      .filter(([status]) => Number(status) < 300)
      .flatMap(([status, response]) => examplesOf(operation, status, contentOf(response))),
  );

/** A reply with what is new each time made the same. */
export const plain = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value)
      .replaceAll(/\b(msg|turn|key|dlv|evt|req)_[0-9A-HJKMNP-TV-Z]{26}/g, "$1_id")
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "a time")
      .replaceAll(/sha256:[0-9a-f]{64}/g, "sha256:hash")
      .replaceAll(/"gw_[\w-]+"/g, '"gw_secret"'),
  );

export const nameOf = ({ operation, status, type, name }: Example) => `${operation} ${status} ${type} ${name}`;
