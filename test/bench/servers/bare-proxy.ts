import { createServer } from "node:http";
import { Pool } from "undici";

// The bare cost of a proxy that only hands on: Node's server before undici's client. Of undici's ways to do that this is the
// cheapest; no option is set that the gateway does not set as well.

const pool = new Pool(process.argv[2] ?? "", { headersTimeout: 0, bodyTimeout: 0 });
const PASSED = ["content-type", "accept"] as const;

const server = createServer((req, res) => {
  const parts: Buffer[] = [];
  req.on("data", (part: Buffer) => parts.push(part));
  req.on("end", () => {
    const body = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
    const headers = PASSED.flatMap((name) => (req.headers[name] === undefined ? [] : [name, req.headers[name]]));
    pool
      .stream({ method: "POST", path: req.url ?? "/", headers, body }, ({ statusCode, headers: said }) => {
        const { connection: _, "keep-alive": __, "transfer-encoding": ___, ...passed } = said;
        return res.writeHead(statusCode, passed);
      })
      .catch(() => res.destroy());
  });
});
process.on("disconnect", () => process.exit());
server.listen(0, "127.0.0.1", () => process.send?.(server.address()));
