import type { Config } from "#config/config.ts";
import type { Core } from "#core/core.ts";
import type { Reloads } from "#core/reload.ts";
import type { Info } from "#generated/rpc-types.ts";
import { rpcHandlers } from "#handlers/rpc/table.ts";
import type { Clock } from "#kit/clock.ts";
import type { Events } from "#observe/events.ts";
import type { GuessGuard } from "#wire/call/auth.ts";
import type { WireCall } from "#wire/call/call.ts";
import { rateLimitOf } from "#wire/call/rate-limit.ts";
import type { Documents } from "#wire/pages/documents.ts";
import { createRpcDispatch, type RpcCaller, type RpcMethods } from "#wire/rpc/rpc.ts";
import { createRpcHttpDoor } from "#wire/rpc/rpc-http.ts";
import { createRpcMethods } from "#wire/rpc/rpc-methods.ts";

type RpcSurfaceParts = {
  core: Core;
  reloads: Reloads;
  config: () => Config;
  clock: Clock;
  events: Events;
  version: string;
  uptimeMs: () => number;
  info: () => Info;
  documents: () => Promise<Documents>;
  /** Where this caller finds RPC; without one, where the gateway was told to listen. */
  servedAt: (call: WireCall | undefined) => string;
  identify: (hash: Buffer) => RpcCaller | undefined;
  guard: GuessGuard;
  extraMethods: RpcMethods | undefined;
};

/** The 12 methods behind one dispatcher, and the doors that lead to it. */
export const createRpcSurface = (parts: RpcSurfaceParts) => {
  const { config, clock, events, documents, servedAt } = parts;
  const rateLimit = rateLimitOf(parts.core.store, "rpc", clock, () => config().gateway.rpc.rateLimit).count;
  const own = createRpcMethods(rpcHandlers(parts), async ({ exchange }) =>
    JSON.parse((await documents()).openrpc(exchange.servedAt ?? servedAt(undefined))),
  );
  const methods: RpcMethods = new Map([...own, ...(parts.extraMethods ?? [])]);
  /** A dispatcher for these methods; what each token may call in a time is counted over all of them. */
  const dispatchOf = (table: RpcMethods) => createRpcDispatch(table, { events, rateLimit });
  const http = createRpcHttpDoor({
    ...parts,
    dispatch: dispatchOf(methods),
    servedAt,
    bodyLimit: () => config().limits.rpcBody,
    recordBodies: () => config().recorder.bodies,
  });
  return { methods, dispatchOf, http };
};
