import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { type SomeConfig, startGateway } from "#test/harness/gateway.ts";
import { startA2aAgent } from "./stand-ins/a2a-agent.ts";
import { replyTo, startHttpAgent } from "./stand-ins/http-agent.ts";
import { stepsIn } from "./told.ts";

const http = await startHttpAgent("stream");
const slow = await startHttpAgent("stream", 150);
const a2a = await startA2aAgent({ binding: "JSONRPC", streaming: true });
const agents: SomeConfig["agents"] = {
  main: { backend: "http", http: { url: http.url }, models: ["fast"] },
  hasty: { backend: "http", http: { url: http.url }, timeouts: { firstByte: "400ms", silence: "400ms" } },
  slow: { backend: "http", http: { url: slow.url } },
  remote: { backend: "a2a", a2a: { url: a2a.url } },
};
const gateway = await startGateway({ config: { gateway: { defaultAgent: "main" }, agents } });
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  for (const server of [http, slow, a2a]) await server[Symbol.asyncDispose]();
});
afterEach(() => {
  for (const server of [http, slow, a2a]) server.reset();
});

const { rest } = gateway;
function send(body: object) {
  return rest.call("chat.send", { body });
}

describe("an agent over HTTP behind the gateway", () => {
  it("answers a waiting caller, and gets the conversation with the next message", async () => {
    const { json } = await send({ message: "one", session_id: "chat:http" });
    expect(json).toMatchObject({ reply: replyTo("one"), usage: { input: 7, output: 6 } });
    await send({ message: "two", session_id: "chat:http", model: "fast" });
    expect(http.seen.at(-1)?.json).toMatchObject({
      model: "fast",
      history: [
        { role: "user", text: "one", outside: false },
        { role: "assistant", text: replyTo("one"), outside: false },
      ],
    });
    expect((await send({ message: "three", model: "other" })).status).toBe(400);
  });

  it("is disconnected at once when its turn is cancelled, and its written text is stored", async () => {
    const stream = await rest.stream("chat.send", { body: { message: "one", agent: "slow" } });
    let turnId = "";
    for await (const { event, data } of stream.events) {
      turnId ||= (data as { turn_id: string }).turn_id;
      if (event === "message.delta") break;
    }
    const asked = await slow.next();
    expect((await rest.call("turns.cancel", { path: { turn_id: turnId } })).status).toBe(200);
    expect(await asked.left).toBe(true);
    const { json: turn } = await rest.call("turns.get", { path: { turn_id: turnId } });
    expect(turn).toMatchObject({ status: "cancelled", reply: expect.stringMatching(/^You /) });
  });

  it("gets a retry if it requests one, not before the requested time", async () => {
    http.failNext("503 with Retry-After");
    const began = performance.now();
    const { json } = await send({ message: "one" });
    expect(json.reply).toBe(replyTo("one"));
    expect(performance.now() - began).toBeGreaterThan(900);
    expect(http.seen.map(({ json: sent }) => sent.attempt)).toEqual([1, 2]);
    expect(new Set(http.seen.map(({ headers }) => headers["idempotency-key"]))).toEqual(new Set([json.turn_id]));
    const reason = "the agent's service answered 503: it is not available";
    expect(await stepsIn(gateway, json.turn_id, "turn.returned")).toMatchObject([{ attempt: 1, reason }]);
  });

  it("gets no retry if that would change nothing", async () => {
    http.failNext("401");
    const refused = await send({ message: "one" });
    expect([refused.status, http.seen.length]).toEqual([502, 1]);
    expect(refused.problem).toMatchObject({
      detail: "the agent's service answered 401: it refuses the gateway's credentials",
    });
  });

  it("fails its turn if it becomes silent", async () => {
    http.failNext("hang in the middle");
    expect((await send({ message: "one", agent: "hasty" })).status).toBe(504);
    expect(await http.seen[0]?.left).toBe(true);
  });

  it("may be written in Python", async () => {
    const folder = join(import.meta.dirname, "../../docs/examples/python-http-agent");
    const python = spawn("python3", ["-u", "agent.py", "0"], { cwd: folder, stdio: ["ignore", "pipe", "ignore"] });
    try {
      const [line] = (await once(python.stdout, "data")) as [Buffer];
      const url = line.toString().trim();
      await using other = await startGateway({ config: { agents: { main: { backend: "http", http: { url } } } } });
      const ask = async (message: string) => {
        const answer = await other.rest.send("POST", "/api/v1/chat/send", { body: { message, session_id: "chat:py" } });
        return [answer.status, answer.json.reply];
      };
      expect(await ask("How long is this?")).toEqual([200, "That was message 1 of ours. It has 4 words."]);
      expect(await ask("And this")).toEqual([200, "That was message 2 of ours. It has 2 words."]);
    } finally {
      python.kill();
    }
  });
});

describe("an A2A agent behind the gateway", () => {
  it("answers completely and streamed, in one context for the session", async () => {
    const body = { message: "one", agent: "remote", session_id: "chat:a2a" };
    expect((await send(body)).json).toMatchObject({ reply: "You said: one That is all." });
    const events = await (await rest.stream("chat.send", { body })).all();
    expect(events.at(-1)?.event).toBe("turn.completed");
    expect(new Set(a2a.messages().map(({ contextId }) => contextId)).size).toBe(1);
  });

  it("gets a retry after its own failure, and its error text is hidden", async () => {
    a2a.failNext("an error inside at once");
    expect((await send({ message: "one", agent: "remote" })).json).toMatchObject({ status: "completed" });
    a2a.fail("401");
    const answer = await send({ message: "one", agent: "remote" });
    expect(answer.problem.detail).toBe("the remote agent answered 401: it refuses the gateway's credentials");
    expect(answer.text).not.toContain("raw-words");
  });
});
