import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { printed } from "./in-process.ts";

/** Starts a server that is not a gateway. */
const startServer = async (answer: RequestListener): Promise<string> => {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

const answering =
  (body: unknown, status = 200): RequestListener =>
  (_, response) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));

test.each([["'; touch pwned; '"], ["\u001b]0;x\u0007"], [""], ["a b"], [5], [null], [undefined]])(
  "open prints no link with the code %j, which a gateway does not create",
  async (code) => {
    const url = await startServer(answering({ code, expires_at: "2026-11-28T00:00:00Z" }, 201));
    expect(await printed(["open", "--url", url, "--key", "key-of-test"])).toEqual({
      out: "",
      err: `The server at ${url} answered something that is not a gateway's reply.\nNext: name the gateway's own address: --url URL\n`,
      code: 3,
    });
  },
);
