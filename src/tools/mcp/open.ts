import type { Clock } from "#kit/clock.ts";
import type { Said } from "#kit/programs/said.ts";
import type { ToolSource } from "../tool.ts";
import { createToolServer, type ServerSettings } from "./server.ts";
import { createToolSource } from "./source.ts";

export type ToolSettings = {
  servers: readonly ServerSettings[];
  /** As `server/tool` or `server/*`. */
  wanted: readonly string[];
};

/** By the server's name: what its program said, and why it could not be started. */
type ToolParts = {
  clock: Clock;
  say: (server: string, said: Said) => void;
  failed: (server: string, reason: string) => void;
};

/** The servers of tools of one agent, and what of them it may call. */
export const openToolServers = ({ servers, wanted }: ToolSettings, { clock, say, failed }: ToolParts): ToolSource =>
  createToolSource(
    servers.map((server) => {
      const { name } = server;
      return createToolServer(server, {
        clock,
        say: (said) => say(name, said),
        failed: (reason) => failed(name, reason),
      });
    }),
    wanted,
  );
