import type { McpServer as OldServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { McpServer } from "@modelcontextprotocol/server";

type State = { hasMore: boolean; changed: () => void };

export function newState(changed?: () => void): State;
export function newServer(state: State, era: string): McpServer;
export function newOldServer(state: State): OldServer;
