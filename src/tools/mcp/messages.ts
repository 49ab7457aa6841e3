import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";

/** A message of the protocol; undefined for a line that is none, as programs that print what they should not are common. */
export const readMessage = (line: Buffer): JSONRPCMessage | undefined => {
  try {
    const message = JSON.parse(line.toString("utf8")) as { jsonrpc?: unknown } | null;
    return message?.jsonrpc === "2.0" ? (message as JSONRPCMessage) : undefined;
  } catch {
    return undefined;
  }
};
