import { createServer } from "node:http";
import { echo } from "./echo.ts";

const server = createServer(echo);
process.on("disconnect", () => process.exit());
server.listen(0, "127.0.0.1", () => process.send?.(server.address()));
