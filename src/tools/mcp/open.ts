import type { Clock } from "#core/clock.ts";
import type { Said } from "#core/programs/said.ts";
import type { ToolSource } from "../tool.ts";
import { createToolServer, type ServerSettings } from "./server.ts";
import { createToolSource } from "./source.ts";

export type ToolSettings = {
  servers: readonly ServerSettings[];
  /** As `server/tool` or `server/*`. */
  wanted: readonly string[];
};

/** The servers of tools of one agent, and what of them it may call. */
export const openToolServers = (
  { servers, wanted }: ToolSettings,
  { clock, say }: { clock: Clock; say: (server: string, said: Said) => void },
): ToolSource =>
  createToolSource(
    servers.map((server) => createToolServer(server, { clock, say: (said) => say(server.name, said) })),
    wanted,
  );
