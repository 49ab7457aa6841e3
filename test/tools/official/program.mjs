// An MCP server as a program. Its argument is the revision, or `both`.
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { newOldServer, newServer, newState } from "./servers.mjs";

const [revision] = process.argv.slice(2);
const state = { ...newState(), isLasting: true };
if (revision === "2025-11-25") await newOldServer(state).connect(new StdioServerTransport());
else serveStdio(({ era }) => newServer(state, era), { legacy: revision === "both" ? "serve" : "reject" });
