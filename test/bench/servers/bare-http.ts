import { createServer } from "node:http";
import { echo } from "./echo.ts";

// What Node itself costs. What the gateway does beyond this is its own.

const server = createServer(echo);
process.on("disconnect", () => process.exit());
server.listen(0, "127.0.0.1", () => process.send?.(server.address()));
