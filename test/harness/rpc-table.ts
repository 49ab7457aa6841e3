import type { RpcMethodRow, RpcMethods } from "#wire/rpc/rpc.ts";

function row(name: string, run: (params: never) => unknown): [string, RpcMethodRow] {
  return [name, { name, permission: null, required: [], positional: true, check: () => undefined, run }];
}

/** The methods of JSON-RPC's own examples, and methods with each kind of failure. */
export const exampleMethods: RpcMethods = new Map([
  row("subtract", (params: [number, number] | { minuend: number; subtrahend: number }) => {
    const [minuend, subtrahend] = Array.isArray(params) ? params : [params.minuend, params.subtrahend];
    return minuend - subtrahend;
  }),
  row("sum", (params: number[]) => params.reduce((a, b) => a + b, 0)),
  row("update", () => undefined),
  row("notify_sum", () => undefined),
  row("notify_hello", () => undefined),
  row("get_data", () => ["hello", 5]),
  row("later", async ({ value }: { value: unknown }) => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    return value;
  }),
  row("fail", () => {
    throw new Error(SECRET_CAUSE);
  }),
  row("fail_later", async () => {
    throw new Error(SECRET_CAUSE);
  }),
  row("unwritable", () => {
    const circle: { inside?: unknown } = {};
    circle.inside = circle;
    return circle;
  }),
]);

/** For the log only, and never for the caller. */
export const SECRET_CAUSE = "the cause that nobody outside may know";
