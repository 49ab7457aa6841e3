import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { answerServer, event, events, json } from "./answers.ts";
import { pythons, runForm } from "./python.ts";
import { serve } from "./serve.ts";

/** The oldest and the newest: `asyncio` cancels differently before 3.12. */
const all = pythons.map(([version, path]) => ["AsyncGateway", version, path] as const);

describe.concurrent.each(all)("%s for Python %s", (form, _, python) => {
  const run = (url: string, code: string) =>
    runForm(
      form,
      python,
      `gateway = AsyncGateway(url="${url}", key="k", max_retries=0)\n${code}\nawait gateway.close()`,
    );

  test("closes the connection of a cancelled call", async () => {
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

  test("raises every cancellation, whenever it arrives", async () => {
    await using server = await serve(async (_, res) => {
      res.writeHead(200, { "content-type": "application/json", "content-length": 2 }).end("{}");
    });
    const shown = await run(
      server.url,
      `
async def work():
    while True:
        await gateway.skills.list()
lost = 0
for n in range(150):
    task = asyncio.ensure_future(work())
    await asyncio.sleep(0.02 + n % 20 / 1000)
    task.cancel()
    done, _ = await asyncio.wait((task,), timeout=1)
    if not done:
        lost += 1
        while not task.done():
            task.cancel()
            await asyncio.wait((task,), timeout=0.05)
show(lost, gateway._transport._free)
`,
    );
    expect(shown).toEqual([[0, 100]]);
  });

  test("raises a cancellation that arrives with a result or at the end of the timeout, and loses no connection", async () => {
    const code = `
from agent_gateway._async.timing import in_time
async def told(task):
    try:
        return await task
    except asyncio.CancelledError:
        return "cancelled"
    except OSError as error:
        return str(error)
async def soon():
    await asyncio.sleep(0)
    return "result"
async def stubborn():
    try:
        await asyncio.sleep(5)
    except asyncio.CancelledError:
        return "late result"
undone, seen = [], []
for ticks in range(8):
    task = asyncio.ensure_future(in_time(soon(), 5, undone.append))
    for _ in range(ticks):
        await asyncio.sleep(0)
    was_done = not task.cancel()
    seen.append((was_done, await told(task)))
show(all((outcome == "result") == was_done for was_done, outcome in seen), "result" in undone)
for ticks in range(8):
    task = asyncio.ensure_future(in_time(asyncio.sleep(5), 0))
    for _ in range(ticks):
        await asyncio.sleep(0)
    was_done = not task.cancel()
    outcome = await told(task)
    assert (outcome == "timed out") == was_done, outcome
show(await told(asyncio.ensure_future(in_time(asyncio.sleep(5), 0))), await told(asyncio.ensure_future(in_time(stubborn(), 0.01))))
async def failing_work():
    raise ValueError("its own")
try:
    await in_time(failing_work(), None)
except ValueError as error:
    show(str(error))
`;
    expect(await runForm(form, python, code)).toEqual([[true, true], ["timed out", "late result"], "its own"]);
  });

  test("closes the connection of a stream that its reader leaves, and reads no further", async () => {
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

  test("makes hundreds of concurrent calls over the allowed number of connections", async () => {
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

  test("raises an error if all its connections are in use", async () => {
    await using server = await answerServer([events("open", event("turn.started", "1"))]);
    const [failure] = await run(
      server.url,
      `
one = AsyncGateway(url=gateway._settings.url, key="k", max_connections=1, timeout=3, max_retries=0)
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
        "All 1 connections of the client were in use for 3 s. Close streams that are not read, or pass a larger `max_connections`.",
    });
  });

  test("works in one event loop after another", async () => {
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

  test("cancels one caller without closing the shared WebSocket", async () => {
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
