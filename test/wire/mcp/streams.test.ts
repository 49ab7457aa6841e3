import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test, vi } from "vitest";
import { SECRETS, type Start, startGateway } from "#test/harness/gateway.ts";
import { OVER_TLS, openHttp2 } from "#test/harness/http2.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { skillsFolder, skillText } from "#test/harness/skills.ts";
import { AccessLine } from "#wire/call/access-line.ts";
import { call, fakeTools, heldTools, LEGACY, MODERN, messageOf, OPEN, post } from "./clients.ts";

function start(options: Start = {}) {
  return startGateway({ ...options, config: { gateway: OPEN, ...options.config } });
}
const ASK = { name: "ask_main", arguments: { message: "hi" } };

/** The events of an open stream, one by one. */
function eventsOf(res: Response) {
  const reader = (res.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  return {
    /** The next message; undefined at the end. */
    async next(): Promise<{ method?: string; result?: unknown; params?: Record<string, unknown> } | undefined> {
      for (;;) {
        const end = text.indexOf("\n\n");
        if (end >= 0) {
          const data = /^data: (.*)$/m.exec(text.slice(0, end))?.[1];
          text = text.slice(end + 2);
          if (data) return JSON.parse(data);
          continue;
        }
        const { done, value } = await reader.read();
        if (done) return undefined;
        text += value;
      }
    },
    leave: () => reader.cancel(),
  };
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const listening = { notifications: { toolsListChanged: true } };

describe("a client that listens for changes", () => {
  test("is notified of a reload, and leaves", async () => {
    await using gateway = await start();
    const events = eventsOf(await post(gateway.url, messageOf("subscriptions/listen", listening)));
    expect(await events.next()).toMatchObject({ method: "notifications/subscriptions/acknowledged" });
    await gateway.reload({ gateway: OPEN, agents: { other: { backend: "echo" } } });
    expect(await events.next()).toMatchObject({ method: "notifications/tools/list_changed" });
    await events.leave();
    const { status } = await gateway.logged("request", { operation: "mcp.subscriptions/listen" });
    expect(status).toBe(200);
  });

  test("is notified of another skill", async () => {
    const dir = skillsFolder({});
    await using gateway = await start({ config: { skills: { dirs: [dir] } } });
    const events = eventsOf(await post(gateway.url, messageOf("subscriptions/listen", listening)));
    await events.next();
    mkdirSync(join(dir, "quote"));
    writeFileSync(join(dir, "quote/SKILL.md"), skillText("quote", "Writes a quote."));
    await createRpc(gateway.url).call("system.reload");
    expect(await events.next()).toMatchObject({ method: "notifications/tools/list_changed" });
    await events.leave();
  });

  test("is notified once of a reload, of the lists that it changes, and loses its stream when the server is switched off", async () => {
    const dir = skillsFolder({ quote: skillText("quote", "Writes a quote.") });
    const agents = { main: { backend: "echo" as const } };
    const same = { gateway: { ...OPEN, defaultAgent: "main" }, agents, skills: { dirs: [dir] } };
    await using gateway = await start({ config: same });
    const notifications = { toolsListChanged: true, resourcesListChanged: true };
    const sent = { key: gateway.adminKey };
    const events = eventsOf(await post(gateway.url, messageOf("subscriptions/listen", { notifications }), sent));
    const seen: (string | undefined)[] = [];
    const next = async () => void seen.push((await events.next())?.method);
    await next();
    await gateway.reload({ ...same, limits: { restBody: "2MiB" } });
    await createRpc(gateway.url).call("system.reload");
    await gateway.reload({ ...same, agents: { ...agents, other: { backend: "echo", skills: [] } } });
    await next();
    writeFileSync(join(dir, "quote/SKILL.md"), skillText("quote", "Writes two quotes."));
    await gateway.reload(same);
    await next();
    await next();
    await createRpc(gateway.url).call("system.reload");
    await gateway.reload({ ...same, gateway: { defaultAgent: "main" } });
    await next();
    expect(seen).toEqual([
      "notifications/subscriptions/acknowledged",
      "notifications/tools/list_changed",
      "notifications/tools/list_changed",
      "notifications/resources/list_changed",
      undefined,
    ]);
  });

  test("keeps no request body", async () => {
    await using gateway = await start();
    const received = vi.spyOn(AccessLine.prototype, "received");
    const events = eventsOf(await post(gateway.url, messageOf("subscriptions/listen", listening)));
    await events.next();
    const body = new WeakRef(received.mock.calls[0]?.[0] as Buffer);
    received.mockRestore();
    await vi.waitFor(() => {
      collectGarbage();
      expect(body.deref() === undefined).toBe(true);
    });
    await events.leave();
  });

  test("may open 16 streams with a key, and another when one has closed", async () => {
    const keys = [SECRETS.key, "another-key-of-the-tests"].map((key, n) => ({ name: `key ${n}`, key }));
    await using gateway = await start({ config: { gateway: { ...OPEN, rest: { auth: { keys } } } } });
    const listen = async (key: string) => {
      const res = await post(gateway.url, messageOf("subscriptions/listen", listening), { key });
      return { res, events: eventsOf(res) };
    };
    const open = [];
    for (let n = 0; n < 16; n++) {
      open.push(await listen(SECRETS.key));
      await open[n]?.events.next();
    }
    const { res } = await listen(SECRETS.key);
    expect(res.status).toBe(429);
    const other = await listen("another-key-of-the-tests");
    expect(await other.events.next()).toMatchObject({ method: "notifications/subscriptions/acknowledged" });
    await open[0]?.events.leave();
    await gateway.logged("request", { operation: "mcp.subscriptions/listen", status: 200 });
    const again = await listen(SECRETS.key);
    expect(await again.events.next()).toMatchObject({ method: "notifications/subscriptions/acknowledged" });
    for (const { events } of [...open, other, again]) await events.leave();
  });

  test("loses its stream when its key is revoked", async () => {
    await using gateway = await start();
    const { json } = await gateway.console.call("keys.create", { body: { name: "soon gone" } });
    const sent = { key: String(json.key) };
    const events = eventsOf(await post(gateway.url, messageOf("subscriptions/listen", listening), sent));
    await events.next();
    await gateway.console.call("keys.revoke", { path: { key_id: String(json.key_id) } });
    expect(await events.next()).toBeUndefined();
  });

  test("loses its stream when the gateway stops", async () => {
    await using gateway = await start();
    const events = eventsOf(await post(gateway.url, messageOf("subscriptions/listen", listening)));
    await events.next();
    const drained = gateway.gateway.drain("test", 50);
    expect(await events.next()).toBeUndefined();
    await drained;
  });
});

describe.each([MODERN, LEGACY] as const)("a call of %s that waits", (revision) => {
  test("reports the steps of its turn to a client that asks for them, at most once a second", async () => {
    const { tools, next } = heldTools();
    await using gateway = await start({ mcpTools: tools });
    const params = { ...ASK, _meta: { progressToken: "p" } };
    const answer = call(gateway.url, "tools/call", params, { revision });
    const held = await next();
    held.call.progress?.(1);
    held.call.progress?.(2);
    held.answer({ text: "done" });
    const { events } = await answer;
    expect(events).toMatchObject([
      { method: "notifications/progress", params: { progressToken: "p", progress: 1 } },
      { result: { content: [{ text: "done" }] } },
    ]);
  });

  test("ends its wait when its client disconnects", async () => {
    const { tools, next } = heldTools();
    await using gateway = await start({ mcpTools: tools });
    const controller = new AbortController();
    const sent = { revision, signal: controller.signal };
    const answer = post(gateway.url, messageOf("tools/call", ASK, sent), sent).then((res) => res.text());
    const { call: held } = await next();
    const ended = once(held.signal, "abort");
    controller.abort();
    await expect(answer).rejects.toThrow();
    await ended;
  });

  test("ends its wait with its stream when its key is revoked", async () => {
    const { tools, next } = heldTools();
    await using gateway = await start({ mcpTools: tools });
    const { json } = await gateway.console.call("keys.create", { body: { name: "soon gone" } });
    const sent = { revision, key: String(json.key) };
    const params = { ...ASK, _meta: { progressToken: "p" } };
    const answer = post(gateway.url, messageOf("tools/call", params, sent), sent);
    const { call: held } = await next();
    held.progress?.(1);
    const events = eventsOf(await answer);
    await events.next();
    const ended = once(held.signal, "abort");
    await gateway.console.call("keys.revoke", { path: { key_id: String(json.key_id) } });
    expect(await events.next()).toBeUndefined();
    await ended;
  });

  test("is answered when the gateway stops", async () => {
    const { tools, next } = heldTools();
    await using gateway = await start({ mcpTools: tools });
    const answer = call(gateway.url, "tools/call", ASK, { revision });
    const held = await next();
    held.call.signal.addEventListener("abort", () => held.answer({ text: "The turn goes on." }));
    const drained = gateway.gateway.drain("test", 50);
    expect((await answer).json).toMatchObject({ result: { content: [{ text: "The turn goes on." }] } });
    await drained;
  });

  test("does not hold up other calls, and each gets its own answer", async () => {
    const { tools, next } = heldTools();
    await using gateway = await start({ mcpTools: tools });
    const asked = ["a", "b", "c", "d"].map((message) =>
      call(gateway.url, "tools/call", { name: "ask_main", arguments: { message } }, { revision }),
    );
    const held = [await next(), await next(), await next(), await next()];
    expect((await call(gateway.url, "tools/list", {}, { revision })).status).toBe(200);
    for (const { args, answer } of held.reverse()) answer({ text: (args as { message: string }).message });
    const texts = (await Promise.all(asked)).map(({ json }) => json.result.content[0].text);
    expect(texts).toEqual(["a", "b", "c", "d"]);
  });
});

test("a large answer waits for a slow reader, and arrives whole", async () => {
  const text = "x".repeat(8 * 1024 ** 2);
  await using gateway = await start({ mcpTools: fakeTools({ call: async () => ({ text }) }) });
  const { hostname, port } = new URL(gateway.url);
  const socket = connect({ host: hostname, port: Number(port) });
  const body = JSON.stringify(messageOf("tools/call", ASK, { revision: LEGACY }));
  socket.write(
    [
      "POST /mcp HTTP/1.1",
      `Host: ${hostname}:${port}`,
      `Authorization: Bearer ${SECRETS.key}`,
      "Content-Type: application/json",
      "Accept: application/json, text/event-stream",
      `Content-Length: ${body.length}`,
      "Connection: close",
      "",
      body,
    ].join("\r\n"),
  );
  let received = 0;
  socket.pause();
  const { status } = await Promise.race([
    gateway.logged("request", { operation: "mcp.tools/call" }),
    new Promise<{ status: string }>((resolve) => setTimeout(() => resolve({ status: "waiting" }), 500)),
  ]);
  expect(status).toBe("waiting");
  socket.on("data", (part: Buffer) => {
    received += part.length;
  });
  socket.resume();
  await once(socket, "end");
  expect(received).toBeGreaterThan(text.length);
});

test("over HTTP/2 the same messages are answered", async () => {
  await using gateway = await start({ config: { ...OVER_TLS, gateway: { ...OVER_TLS.gateway, ...OPEN } } });
  await using http2 = await openHttp2(gateway.url);
  const place = { method: "POST", path: "/mcp" };
  const headers = {
    authorization: `Bearer ${SECRETS.key}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const modern = { ...headers, "mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "ask_main" };
  const answer = await http2.exchange(place, modern, JSON.stringify(messageOf("tools/call", ASK)));
  expect(JSON.parse(answer.text)).toMatchObject({ result: { structuredContent: { reply: "hi" } } });
  const body = JSON.stringify(messageOf("tools/call", ASK, { revision: LEGACY }));
  const legacy = await http2.exchange(place, headers, body);
  expect(legacy.headers.get("content-type")).toBe("text/event-stream");
  expect(legacy.text).toContain('"reply":"hi"');
});
