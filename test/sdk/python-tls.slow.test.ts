import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { WebSocketServer } from "ws";
import { root } from "#test/harness/process.ts";
import { event, events, json } from "./answers.ts";
import { pythons, runForm } from "./python.ts";

const cert = join(root, "test/config/tls/cert.pem");
const long = "x".repeat(200_000);

/** Answers calls with a reply, streams with an event, and a call over a WebSocket with a push as well. */
async function secureServer() {
  const tls = { cert: readFileSync(cert), key: readFileSync(join(root, "test/config/tls/key.pem")) };
  const server = createServer(tls, async (req, res) => {
    const { stream } = JSON.parse(await text(req));
    const answer = stream
      ? events("end", event("message.completed", "1", { text: "two" }), event("turn.completed", "2"))
      : json(200, { reply: "one" });
    answer(res);
  });
  const sockets = new WebSocketServer({ server, handleProtocols: ([first]) => first ?? false });
  sockets.on("connection", (socket) =>
    socket.on("message", (data) => {
      const { id } = JSON.parse(String(data));
      socket.send(JSON.stringify({ jsonrpc: "2.0", id, result: {} }));
      socket.send(JSON.stringify({ jsonrpc: "2.0", method: "turn.completed", params: { reply: long } }));
    }),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets.clients) socket.terminate();
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

const forms = pythons.flatMap(([version, path]) =>
  (["Gateway", "AsyncGateway"] as const).map((form) => [form, version, path] as const),
);

describe.each(forms)("%s for Python %s", (form, _, python) => {
  test("makes calls, streams and WebSockets over TLS, and closes them without a warning", async () => {
    await using server = await secureServer();
    const shown = await runForm(
      form,
      python,
      `
import ssl
context = ssl.create_default_context(cafile="${cert}")
async with AsyncGateway(url="${server.url}", key="k", rpc_token="r", ssl_context=context) as gateway:
    show((await gateway.chat.send(message="one")).reply)
    show("".join([piece async for piece in gateway.chat.stream(message="two").text()]))
    async with gateway.rpc.connect() as socket:
        pushes = socket.pushes(timeout=30)
        await socket.agent.send_message(agent_name="main", message="${"x".repeat(60_000)}")
        async for push in pushes:
            show(len(push.params.reply))
            break
        pushes.close()
`,
    );
    expect(shown).toEqual(["one", "two", long.length]);
  });

  test("refuses a certificate that it does not trust", async () => {
    await using server = await secureServer();
    const code = `
async with AsyncGateway(url="${server.url}", key="k", max_retries=0) as gateway:
    show(await failing(lambda: gateway.chat.send(message="one")))
`;
    expect(await runForm(form, python, code)).toMatchObject([
      { class: "ConnectionFailedError", detail: expect.stringContaining("CERTIFICATE_VERIFY_FAILED") },
    ]);
  });
});
