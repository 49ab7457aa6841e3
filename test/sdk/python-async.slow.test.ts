import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { answerServer, event, events, json } from "./answers.ts";
import { forms, runForm } from "./python.ts";
import { serve } from "./serve.ts";

const pythons = forms.filter(([form]) => form === "AsyncGateway");

describe.concurrent.each(pythons)("%s for Python %s", (form, _, python) => {
  const run = (url: string, code: string) =>
    runForm(
      form,
      python,
      `gateway = AsyncGateway(url="${url}", key="k", max_retries=0)\n${code}\nawait gateway.close()`,
    );

  test("closes the connection of a call that is cancelled", async () => {
    const closed: Promise<unknown>[] = [];
    await using server = await serve(async (_, res) => void closed.push(once(res, "close")));
    const shown = await run(
      server.url,
      `
task = asyncio.ensure_future(gateway.chat.send(message="x"))
while not gateway._transport._free < 100:
    await asyncio.sleep(0.01)
await asyncio.sleep(0.3)
task.cancel()
try:
    await task
except asyncio.CancelledError:
    show("cancelled", gateway._transport._free)
try:
    await asyncio.wait_for(gateway.chat.send(message="y"), 0.3)
except asyncio.TimeoutError:
    show("late", gateway._transport._free)
`,
    );
    expect(shown).toEqual([
      ["cancelled", 100],
      ["late", 100],
    ]);
    await Promise.all(closed);
    expect(closed).toHaveLength(2);
  });

  test("closes the connection of a stream that is left, and reads no further", async () => {
    const closed: Promise<unknown>[] = [];
    await using server = await serve(async (_, res) => {
      closed.push(once(res, "close"));
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(event("turn.started", "1"));
    });
    const shown = await run(
      server.url,
      `
async for one in gateway.turns.events("turn_1"):
    show(one["id"])
    break
async with gateway.turns.events("turn_1") as stream:
    async for one in stream:
        show(one["id"])
        break
stream = gateway.turns.events("turn_1")
async def read():
    return [one["id"] async for one in stream]
task = asyncio.ensure_future(read())
await asyncio.sleep(0.3)
stream.close()
show(await task)
await asyncio.sleep(0.05)
show(gateway._transport._free)
`,
    );
    expect(shown).toEqual(["1", "1", ["1"], 100]);
    await Promise.all(closed);
    expect(closed).toHaveLength(3);
  });

  test("makes hundreds of calls at once over as many connections as it may have", async () => {
    let now = 0;
    let most = 0;
    await using server = await serve(async (req, res) => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setTimeout(resolve, 5));
      now -= 1;
      res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ url: req.url }));
    });
    const shown = await run(
      server.url,
      `
async with AsyncGateway(url=gateway._settings.url, key="k", max_connections=20) as few:
    replies = await asyncio.gather(*[few.turns.get(f"turn_{n}") for n in range(500)])
    show(all(reply["url"] == f"/api/v1/turns/turn_{n}" for n, reply in enumerate(replies)), few._transport._free)
`,
    );
    expect(shown).toEqual([[true, 20]]);
    expect(most).toBeLessThanOrEqual(20);
  });

  test("says that all its connections are in use", async () => {
    await using server = await answerServer([events("open", event("turn.started", "1"))]);
    const [failure] = await run(
      server.url,
      `
one = AsyncGateway(url=gateway._settings.url, key="k", max_connections=1, timeout=0.3, max_retries=0)
async with one.turns.events("turn_1") as stream:
    async for _ in stream:
        show(await failing(lambda: one.skills.list()))
        break
await one.close()
`,
    );
    expect(failure).toMatchObject({
      class: "TimedOutError",
      detail:
        "All 1 connections of the client were in use for 0.3 s. Close streams that are not read, or pass a larger `max_connections`.",
    });
  });

  test("serves one event loop after the other", async () => {
    const answers = Array.from({ length: 4 }, (_, n) => json(200, { n }));
    await using server = await answerServer(answers);
    const code = `
import threading
gateway = AsyncGateway(url="${server.url}", key="k", max_retries=0)
def other():
    async def two():
        return [(await gateway.skills.list())["n"] for _ in range(2)]
    show(asyncio.run(two()))
for _ in range(2):
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
`;
    expect(await runForm(form, python, code)).toEqual([
      [0, 1],
      [2, 3],
    ]);
  });

  test("cancels one caller without closing the WebSocket that others wait for", async () => {
    const shown = await run(
      "http://127.0.0.1:1",
      `
socket = AsyncGateway(url="http://127.0.0.1:1", rpc_token="t", max_retries=0).rpc.connect()
first = asyncio.ensure_future(socket.agent.list())
second = asyncio.ensure_future(failing(lambda: socket.agent.list()))
await asyncio.sleep(0)
first.cancel()
show((await second)["class"])
await socket.close()
show((await failing(lambda: socket.agent.list()))["class"])
`,
    );
    expect(shown).toEqual(["ConnectionFailedError", "ClosedError"]);
  });
});
