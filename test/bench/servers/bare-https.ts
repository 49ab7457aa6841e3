import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { echo } from "./echo.ts";

// The minimum cost of TLS in Node. Arguments: the files of the certificate and the key.

const [cert, key] = process.argv.slice(2).map((file) => readFileSync(file, "utf8"));
const server = createServer({ cert, key, minVersion: "TLSv1.2" }, echo);
process.on("disconnect", () => process.exit());
server.listen(0, "127.0.0.1", () => process.send?.(server.address()));
