// Handlers must not import from the wire, so the interface is in the core.
export type * from "#core/mcp-tools.ts";
