import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { echo } from "./echo.ts";

// The bare cost of Node's TLS. Arguments: the certificate's file and the key's.

const [cert, key] = process.argv.slice(2).map((file) => readFileSync(file, "utf8"));
const server = createServer({ cert, key, minVersion: "TLSv1.2" }, echo);
process.on("disconnect", () => process.exit());
server.listen(0, "127.0.0.1", () => process.send?.(server.address()));
