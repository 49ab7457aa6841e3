import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { pythons, runPython } from "./python.ts";
import { type Message, serveSocket } from "./socket-server.ts";

describe.concurrent.each(pythons)("the WebSocket of the client for Python %s", (_, python) => {
  const run = (url: string, code: string) =>
    runPython(
      python,
      `
import agent_gateway._rpc_socket
agent_gateway._rpc_socket._FIRST_PAUSE_S = 0.01
agent_gateway._rpc_socket._ATTEMPTS = 4
socket = Gateway(url="${url}", rpc_token="a token with ümlaut/+?", max_retries=0).rpc.connect()
${code}`,
    );

  test("has one connection for calls, batches and notifications, with the token in a subprotocol", async () => {
    await using server = await serveSocket(({ method }) =>
      method === "agent.list"
        ? { agents: [] }
        : { error: { code: -32002, message: "No", data: { name: "forbidden" } } },
    );
    const shown = await run(
      server.url,
      `
show(socket.agent.list())
show(failing(lambda: socket.agent.status(agent_name="x")))
show([one.ok for one in socket.batch([("agent.list", {}), ("agent.status", {"agentName": "x"})])])
socket.notify("agent.list")
show(socket.agent.list())
socket.close()
show(failing(lambda: socket.agent.list()))
`,
    );
    expect(shown).toEqual([
      { agents: [] },
      expect.objectContaining({ class: "ForbiddenError", operation: "rpc.agent.status" }),
      [true, false],
      { agents: [] },
      expect.objectContaining({ class: "ClosedError" }),
    ]);
    expect(server.sockets).toHaveLength(1);
    const [protocol, bearer = ""] = server.protocols[0]?.split(/, ?/) ?? [];
    expect(protocol).toBe("agent-gateway.v1");
    expect(Buffer.from(bearer.slice(7), "base64url").toString()).toBe("a token with ümlaut/+?");
    expect(server.seen.filter(({ id }) => id === undefined)).toHaveLength(1);
  });

  test("goes on with its streams where they were, over lost connections", async () => {
    const subscribed: unknown[] = [];
    await using server = await serveSocket(({ method, params }, socket) => {
      if (method !== "rpc.subscribe") return {};
      subscribed.push(params);
      const nth = subscribed.length;
      setTimeout(() => server.queued(nth), 20);
      // The last of the first two connections ends without a word.
      if (nth < 3) setTimeout(() => socket.terminate(), 60);
      return { sessions: { s1: `c${nth - 1}` } };
    });
    const shown = await run(
      server.url,
      `
socket.subscribe(sessions={"s1": None}, agents=["main"])
with socket.pushes() as pushes:
    for push in pushes:
        show(push["method"], push["params"]["seq"])
        if push["params"]["seq"] == 3:
            break
`,
    );
    expect(shown).toEqual([1, 2, 3].map((seq) => ["turn.queued", seq]));
    expect(subscribed).toEqual([
      { sessions: { s1: null }, agents: ["main"] },
      { sessions: { s1: "c1" }, agents: ["main"] },
      { sessions: { s1: "c2" }, agents: ["main"] },
    ]);
  });

  test("tells its readers when it does not come back, and why", async () => {
    const gone = await serveSocket((message: Message, socket) => {
      setTimeout(() => socket.close(4401, "the token is not known any more"), 20);
      return message.method === "rpc.subscribe" ? {} : undefined;
    });
    await using server = gone;
    const shown = await run(
      server.url,
      `
pushes = socket.pushes()
socket.subscribe(gateway=None)
show(failing(lambda: next(pushes)))
show(list(pushes))
`,
    );
    expect(shown).toEqual([
      expect.objectContaining({
        class: "ConnectionFailedError",
        detail: expect.stringContaining("4401 the token is not known any more"),
      }),
      [],
    ]);
    expect(server.sockets).toHaveLength(1);
  });

  test("fails the calls that were under way when the connection is lost", async () => {
    await using server = await serveSocket((_, socket) => void setTimeout(() => socket.terminate(), 20));
    const shown = await run(server.url, `show(failing(lambda: socket.agent.list()))`);
    expect(shown).toMatchObject([{ class: "ConnectionFailedError", operation: "rpc.agent.list" }]);
  });

  test("says why the gateway refused it, and what is no gateway", async () => {
    const refusal = {
      jsonrpc: "2.0",
      id: null,
      error: { code: -32000, message: "Authentication failed", data: { name: "unauthenticated" } },
    };
    const server = createServer();
    server.on("upgrade", (req, socket) => {
      const body = req.url === "/rpc/ws" ? JSON.stringify(refusal) : "<html>";
      socket.end(`HTTP/1.1 ${req.url === "/rpc/ws" ? 401 : 200} No\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const shown = await run(
      url,
      `
show(failing(lambda: socket.agent.list()))
show(failing(lambda: Gateway(url="${url}/else", rpc_token="t", max_retries=0).rpc.connect().pushes()))
show(failing(lambda: Gateway(url="http://127.0.0.1:1", rpc_token="t", max_retries=0).rpc.connect().agent.list()))
show(failing(lambda: Gateway(url="${url}").rpc.connect().agent.list()))
`,
    );
    server.close();
    expect(shown).toMatchObject([
      { class: "UnauthenticatedError", status: 401 },
      { class: "ConnectionFailedError" },
      { class: "ConnectionFailedError", detail: expect.stringContaining("ECONNREFUSED") },
      { class: "NoTokenError" },
    ]);
  });

  test("takes frames of every size, in parts, and answers a ping", async () => {
    const long = "😀".repeat(40_000);
    let pongs = 0;
    await using server = await serveSocket(({ params }, socket) => {
      socket.on("pong", () => pongs++);
      socket.ping("there?");
      const text = JSON.stringify({ jsonrpc: "2.0", id: server.seen.at(-1)?.id, result: params.message });
      socket.send(text.slice(0, 10), { fin: false });
      socket.send(text.slice(10, 70_000), { fin: false });
      socket.send(text.slice(70_000), { fin: true });
    });
    const shown = await run(
      server.url,
      `
for size in (1, 200, 40000):
    text = "😀" * size
    show(socket.agent.send_message(agent_name="main", message=text) == text)
`,
    );
    expect(shown).toEqual([true, true, true]);
    expect(server.seen[2]?.params.message).toBe(long);
    expect(pongs).toBeGreaterThanOrEqual(3);
  });

  test("serves many threads at once", async () => {
    await using server = await serveSocket(({ params }) => params);
    const shown = await run(
      server.url,
      `
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool:
    names = list(pool.map(lambda n: socket.agent.status(agent_name=str(n))["agentName"], range(100)))
show(names == [str(n) for n in range(100)])
`,
    );
    expect(shown).toEqual([true]);
    expect(server.sockets).toHaveLength(1);
  });
});
