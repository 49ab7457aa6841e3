import type { Core } from "#core/core.ts";
import type { Reloads } from "#core/reload.ts";
import type { Info } from "#generated/rpc-types.ts";

/** What the RPC handlers speak for: the core, and the gateway around it. */
export type RpcParts = {
  core: Core;
  reloads: Reloads;
  /** What this gateway is and can do. */
  info: () => Info;
  version: string;
  uptimeMs: () => number;
};
