import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { forms, runForm } from "./python.ts";
import { type Message, serveSocket } from "./socket-server.ts";

describe.concurrent.each(forms)("the WebSocket of %s for Python %s", (form, _, python) => {
  const run = (url: string, code: string) =>
    runForm(
      form,
      python,
      `
import agent_gateway._async.connection as connection, agent_gateway._waiting as waiting
waiting._FIRST_PAUSE_S, connection.ATTEMPTS = 0.01, 4
socket = AsyncGateway(url="${url}", rpc_token="a token with ümlaut/+?", max_retries=0).rpc.connect()
${code}
await socket.close()`,
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
show(await socket.agent.list())
show(await failing(lambda: socket.agent.status(agent_name="x")))
show([one.ok for one in await socket.batch([("agent.list", {}), ("agent.status", {"agentName": "x"})])])
await socket.notify("agent.list")
show(await socket.agent.list())
await socket.close()
show(await failing(lambda: socket.agent.list()))
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

  test("continues its streams where they ended, over lost connections", async () => {
    const subscribed: unknown[] = [];
    await using server = await serveSocket(({ method, params }, socket) => {
      if (method !== "rpc.subscribe") return {};
      subscribed.push(params);
      const nth = subscribed.length;
      setTimeout(() => server.queued(nth), 20);
      // The last of the first two connections ends without a message.
      if (nth < 3) setTimeout(() => socket.terminate(), 60);
      return { sessions: { s1: `c${nth - 1}` } };
    });
    const shown = await run(
      server.url,
      `
async with socket.pushes() as pushes:
    await socket.subscribe(sessions={"s1": None}, agents=["main"])
    async for push in pushes:
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

  test("raises the error in its readers if it cannot reconnect", async () => {
    const gone = await serveSocket((message: Message, socket) => {
      setTimeout(() => socket.close(4401, "the token is no longer valid"), 20);
      return message.method === "rpc.subscribe" ? {} : undefined;
    });
    await using server = gone;
    const shown = await run(
      server.url,
      `
pushes = socket.pushes()
await socket.subscribe(gateway=None)
show(await failing(lambda: pushes.__anext__()))
show([push async for push in pushes])
`,
    );
    expect(shown).toEqual([
      expect.objectContaining({
        class: "ConnectionFailedError",
        detail: expect.stringContaining("4401 the token is no longer valid"),
      }),
      [],
    ]);
    expect(server.sockets).toHaveLength(1);
  });

  test("fails the calls in progress when the connection is lost", async () => {
    await using server = await serveSocket((_, socket) => void setTimeout(() => socket.terminate(), 20));
    const shown = await run(server.url, `show(await failing(lambda: socket.agent.list()))`);
    expect(shown).toMatchObject([{ class: "ConnectionFailedError", operation: "rpc.agent.list" }]);
  });

  test("raises the gateway's refusal, and reports an address that is not a gateway", async () => {
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
show(await failing(lambda: socket.agent.list()))
other = AsyncGateway(url="${url}/else", rpc_token="t", max_retries=0).rpc.connect()
async def read():
    async for push in other.pushes():
        show(push)
show(await failing(read))
show(await failing(lambda: AsyncGateway(url="http://127.0.0.1:1", rpc_token="t", max_retries=0).rpc.connect().agent.list()))
show(await failing(lambda: AsyncGateway(url="${url}", key="k").rpc.connect().agent.list()))
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

  test("accepts frames of every size, in parts, and answers a ping", async () => {
    const long = "😀".repeat(40_000);
    let pongs = 0;
    await using server = await serveSocket(({ params }, socket) => {
      socket.on("pong", () => pongs++);
      socket.ping("there?");
      const text = JSON.stringify({ jsonrpc: "2.0", id: server.seen.at(-1)?.id, result: { text: params.message } });
      socket.send(text.slice(0, 10), { fin: false });
      socket.send(text.slice(10, 70_000), { fin: false });
      socket.send(text.slice(70_000), { fin: true });
    });
    const shown = await run(
      server.url,
      `
for size in (1, 200, 40000):
    text = "😀" * size
    show((await socket.agent.send_message(agent_name="main", message=text))["text"] == text)
`,
    );
    expect(shown).toEqual([true, true, true]);
    expect(server.seen[2]?.params.message).toBe(long);
    expect(pongs).toBeGreaterThanOrEqual(3);
  });

  test("returns the pushes that arrive in time, and continues after a pause", async () => {
    await using server = await serveSocket(({ method }) => {
      if (method === "rpc.subscribe") setTimeout(() => server.queued(1), 10);
      if (method === "agent.list") setTimeout(() => server.queued(2), 10);
      return {};
    });
    const shown = await run(
      server.url,
      `
pushes = socket.pushes(timeout=0.5)
await socket.subscribe(sessions={"s1": None})
show((await pushes.__anext__())["params"]["seq"])
show(await failing(lambda: pushes.__anext__()))
await socket.agent.list()
show((await pushes.__anext__())["params"]["seq"])
pushes.close()
show([push async for push in pushes])
`,
    );
    expect(shown).toEqual([
      1,
      expect.objectContaining({ class: "TimedOutError", detail: "No push arrived within 0.5 s." }),
      2,
      [],
    ]);
  });

  test("is shared by many callers at once", async () => {
    await using server = await serveSocket(({ params }) => params);
    const threads = `
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool:
    replies = list(pool.map(lambda n: socket.agent.status(agent_name=str(n)), range(100)))`;
    const tasks = "replies = await asyncio.gather(*[socket.agent.status(agent_name=str(n)) for n in range(100)])";
    const shown = await run(
      server.url,
      `${form === "Gateway" ? threads : tasks}
show([one["agentName"] for one in replies] == [str(n) for n in range(100)])`,
    );
    expect(shown).toEqual([true]);
    expect(server.sockets).toHaveLength(1);
  });
});
