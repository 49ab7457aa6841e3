import { describe, expect, test } from "vitest";
import { type Answer, answerServer, json } from "./answers.ts";
import { forms, runForm } from "./python.ts";

describe.concurrent.each(forms)("the REST calls of %s for Python %s", (form, _, python) => {
  /** Runs a program against a server that answers one request after another. */
  const answered = async (answers: Answer[], code: string) => {
    await using server = await answerServer(answers);
    const client = `gateway = AsyncGateway(url="${server.url}", key="secret", rpc_token="rpc", webhook_token="hook")\n`;
    const shown = await runForm(form, python, `${client}${code}\nawait gateway.close()`);
    return { shown, seen: server.seen };
  };

  test("send each value in the place of the contract, with the token of its surface", async () => {
    const { shown, seen } = await answered(
      [json(200, { keys: [], next_cursor: null }), (res) => res.writeHead(204).end(), json(200, {}), json(200, {})],
      `
show((await gateway.keys.list(limit=2)).data)
show(await gateway.keys.revoke("key/1"))
await gateway.with_options(headers={"X-GitHub-Event": "push"}).hooks.mapped_by_name("git hub", {"ref": "main"}, idempotency_key="k")
await gateway.keys.rotate("key_1", expires_at=None)
`,
    );
    expect(shown).toEqual([{ keys: [], next_cursor: null }, null]);
    expect(seen).toMatchObject([
      { method: "GET", url: "/api/v1/keys?limit=2", headers: { authorization: "Bearer secret" }, body: undefined },
      { method: "DELETE", url: "/api/v1/keys/key%2F1" },
      {
        method: "POST",
        url: "/hooks/git%20hub",
        headers: { authorization: "Bearer hook", "x-github-event": "push", "idempotency-key": "k" },
        body: { ref: "main" },
      },
      { url: "/api/v1/keys/key_1/rotate", body: { expires_at: null } },
    ]);
  });

  test("omit values that were not given, and send any character", async () => {
    const { seen } = await answered(
      [json(200, {}), json(200, { deliveries: [], next_cursor: null })],
      `
await gateway.chat.send(message="Grüße 😀", skill_ids=[])
await gateway.deliveries.list(from_="2026-01-01T00:00:00Z", id="a&b")
`,
    );
    expect(seen[0]?.body).toEqual({ message: "Grüße 😀", skill_ids: [] });
    expect(seen[1]?.url).toBe("/api/v1/deliveries?from=2026-01-01T00%3A00%3A00Z&id=a%26b");
  });

  test("return the response and the request's id with the reply", async () => {
    const { shown } = await answered(
      [json(200, { a: 1 }), json(200, { a: 2 }, { "x-more": "yes" })],
      `
reply = await gateway.ops.healthz()
show(reply, request_id_of(reply))
reply, response = await gateway.with_response(gateway.ops.healthz)
show(reply, response.status, response.headers["x-more"], response.request_id)
`,
    );
    expect(shown).toEqual([
      [{ a: 1 }, "req_9"],
      [{ a: 2 }, 200, "yes", "req_9"],
    ]);
  });

  test("read one page, and the next", async () => {
    const page = (turns: number[], next: string | null) => json(200, { turns, next_cursor: next });
    const { shown, seen } = await answered(
      [page([4], "c4"), page([5], null), page([], null)],
      `
page = await gateway.turns.list()
show(page.items, page.data["next_cursor"], page.next_cursor, page.has_more, page.request_id, repr(page))
show((await page.next_page()).items, (await gateway.turns.list()).has_more)
`,
    );
    expect(shown).toEqual([
      [[4], "c4", "c4", true, "req_9", `${form === "Gateway" ? "" : "Async"}Page(turns=1, has_more=True)`],
      [[5], false],
    ]);
    expect(seen.map(({ url }) => url)).toEqual(["/api/v1/turns", "/api/v1/turns?cursor=c4", "/api/v1/turns"]);
  });

  test("report every mistake in plain words", async () => {
    const html: Answer = (res) => res.writeHead(200, { "content-type": "text/html" }).end("<html>");
    const short: Answer = (res) =>
      res.writeHead(200, { "content-type": "application/json", "content-length": 99 }).end("{");
    const { shown } = await answered(
      [short, html],
      `
once = gateway.with_options(max_retries=0)
show(await failing(lambda: once.agents.beat("main")))
show(await failing(lambda: once.rpc.agent.list()))
show(await failing(lambda: AsyncGateway(url="http://127.0.0.1:1", key="k", max_retries=0).skills.list()))
show(await failing(lambda: AsyncGateway(url="http://nowhere.invalid", key="k", max_retries=0).skills.list()))
show(await failing(lambda: AsyncGateway(url="http://127.0.0.1:1", rpc_token="t").skills.list()))
show(await failing(lambda: AsyncGateway()))
show(await failing(lambda: AsyncGateway(anonymous=True).skills.list()))
for url in ("localhost:18789", "ftp://x", "http://", "http://a b", "http://x:port"):
    try:
        AsyncGateway(url=url)
    except ValueError as error:
        show(str(error))
try:
    await gateway.chat.send(mesage="x")
except TypeError as error:
    show(str(error))
try:
    AsyncGateway(key="k", api_key="x")
except TypeError as error:
    show(str(error))
`,
    );
    const [half, rpc, refused, nowhere, none, nothing, anonymous, ...urls] = shown as {
      class: string;
      text: string;
    }[];
    expect(half).toMatchObject({ class: "ConnectionFailedError" });
    expect(rpc).toMatchObject({ class: "NotAGatewayError" });
    expect(refused?.text).toBe(
      "skills.list: Nothing answers at 127.0.0.1:1 (ECONNREFUSED). Is the gateway running, and is the address right?",
    );
    expect(nowhere?.text).toBe("skills.list: There is no host nowhere.invalid. Is the address right?");
    expect(none?.text).toBe("skills.list: This call needs a REST key. Pass `key` to the client, or set REST_API_KEY.");
    expect(nothing).toMatchObject({
      class: "NoTokenError",
      text: expect.stringMatching(/^The client has no token\. Pass `key`, .* `anonymous=True`\.$/),
    });
    expect(anonymous?.text).toBe(none?.text);
    expect(urls[0]).toBe(
      'The gateway\'s url "localhost:18789" does not begin with http:// or https://. Write it as http://HOST:PORT or https://HOST, such as http://localhost:18789.',
    );
    expect(urls.slice(2, 5)).toEqual(
      ["http://", "http://a b", "http://x:port"].map((url) => expect.stringContaining(`"${url}" is not a url`)),
    );
    expect(urls[5]).toContain("unexpected keyword argument 'mesage'");
    expect(urls[6]).toContain("unexpected keyword argument 'api_key'");
  });

  test("fail after a timeout", async () => {
    const slowly: Answer = (res) => {
      res.writeHead(200, { "content-type": "application/json" }).write("{");
    };
    const { shown } = await answered(
      [() => {}, slowly],
      `
quick = gateway.with_options(timeout=0.2, max_retries=0)
show(await failing(lambda: quick.ops.healthz()))
show(await failing(lambda: quick.ops.healthz()))
`,
    );
    const late = { class: "TimedOutError", name: "timeout", detail: expect.stringContaining("within 0.2 s") };
    expect(shown).toEqual([expect.objectContaining(late), expect.objectContaining(late)]);
  });
});

/** Forty calls, four at a time. */
const THREADS = `from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(4) as pool:
        show(sorted(one["n"] for one in pool.map(lambda _: gateway.skills.list(), range(40))))`;
const TASKS = `some = AsyncGateway(url=gateway._settings.url, key="k", max_connections=4)
    show(sorted(one["n"] for one in await asyncio.gather(*[some.skills.list() for _ in range(40)])))
    await some.close()`;

describe.concurrent.each(forms)("the connections of %s for Python %s", (form, _, python) => {
  test("are few for many concurrent calls, and are replaced if the gateway has closed them", async () => {
    const all = Array.from({ length: 42 }, (_, n) => json(200, { n }, n === 40 ? { "keep-alive": "timeout=1" } : {}));
    await using server = await answerServer(all);
    let opened = 0;
    server.server.on("connection", () => opened++);
    const code = `
async with AsyncGateway(url="${server.url}", key="k", max_retries=0) as gateway:
    ${form === "Gateway" ? THREADS : TASKS}
    await gateway.skills.list()
    import time; time.sleep(0.3)
    await gateway.skills.list()
`;
    server.server.on("request", (_, res) => {
      // After the fortieth call every idle connection is closed.
      if (server.seen.length === 40)
        res.once("finish", () => setTimeout(() => server.server.closeIdleConnections(), 50));
    });
    const [numbers] = await runForm(form, python, code);
    expect(numbers).toEqual(Array.from({ length: 40 }, (_, n) => n));
    expect(opened).toBeLessThanOrEqual(6);
    expect(server.seen).toHaveLength(42);
  });
});
