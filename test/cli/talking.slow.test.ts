import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { emptyFolder } from "./cli.ts";
import { startCommands } from "./gateway.ts";

const { run, start, json } = await startCommands();

test("send prints only the reply in a pipe", async () => {
  expect(await run(["send", "main", "Hello there"])).toEqual({ code: 0, out: "Hello there\n", err: "" });
  expect(await run(["send", "main", "-"], { input: "from a pipe" })).toMatchObject({ code: 0, out: "from a pipe\n" });
  expect(await run(["send", "main", "Hi", "--no-stream"])).toEqual({ code: 0, out: "Hi\n", err: "" });
});

test("send escapes the control characters of a reply on a terminal", async () => {
  const { code, out } = await run(["send", "main", "red \u001b[31mtext"], { terminal: true });
  expect(code).toBe(0);
  expect(out).toContain("red \\u001b[31mtext");
});

test("send prints the events of the reply as JSON, one per line", async () => {
  const { out } = await run(["send", "main", "Hello", "--json"]);
  const events = out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).event);
  expect(events).toEqual(["turn.started", "message.delta", "message.completed", "turn.completed"]);
  expect(await json("send", "main", "Hello", "--no-stream")).toMatchObject({ status: "completed", reply: "Hello" });
  expect((await run(["send", "main", "Hello", "-q"])).out).toMatch(/^turn_\w+\n$/);
});

test("send starts nothing twice with the same key, and continues a session", async () => {
  const [one, other] = [
    await json("send", "main", "Hello", "--no-stream", "--idempotency-key", "the-key", "--session", "chat:one"),
    await json("send", "main", "Hello", "--no-stream", "--idempotency-key", "the-key", "--session", "chat:one"),
  ];
  expect(other.turn_id).toBe(one.turn_id);
  expect(one.session_id).toBe("chat:one");
});

test("a failed turn ends with exit code 7, and prints where to read more", async () => {
  for (const more of [[], ["--no-stream"], ["--json"]]) {
    const { code, err } = await run(["send", "bad", "Hello", ...more]);
    expect([code, err]).toEqual([
      7,
      expect.stringMatching(/^no such luck \(turn-failed.*\)\nNext: agent-gateway turns show turn_\w+\n$/),
    ]);
  }
});

test("an unknown agent ends with 5, and lists the existing agents", async () => {
  const { code, err } = await run(["send", "nobody", "Hello"]);
  expect(code).toBe(5);
  expect(err).toMatch(/There are `main`, `slow`, `bad`\. .*\nNext: agent-gateway agents list\n$/);
});

test("a gateway that does not run ends with 3, and a wrong token with 4", async () => {
  const gone = await run(["send", "main", "Hello"], { env: { GATEWAY_URL: "http://127.0.0.1:2" } });
  expect([gone.code, gone.err]).toEqual([3, expect.stringContaining("Nothing answers at 127.0.0.1:2 (ECONNREFUSED).")]);
  const wrong = await run(["send", "main", "Hello", "--key", "a-wrong-key-of-some-length"]);
  expect([wrong.code, wrong.err]).toEqual([4, expect.stringContaining("Next: agent-gateway doctor")]);
});

test("a redirect is not followed: no token is sent to another address", async () => {
  let asked = 0;
  const other = createServer((_, res) => {
    asked++;
    res.end("{}");
  }).listen(0, "127.0.0.1");
  const elsewhere = () => `http://127.0.0.1:${(other.address() as AddressInfo).port}/elsewhere`;
  const redirecting = createServer((_, res) => res.writeHead(307, { location: elsewhere() }).end()).listen(
    0,
    "127.0.0.1",
  );
  onTestFinished(() => {
    other.close();
    redirecting.close();
  });
  await Promise.all([once(redirecting, "listening"), other.listening || once(other, "listening")]);
  const url = `http://127.0.0.1:${(redirecting.address() as AddressInfo).port}`;
  const payload = join(emptyFolder(), "payload.json");
  writeFileSync(payload, "{}");
  for (const call of [
    ["send", "main", "Hello"],
    ["sessions", "list"],
    ["hooks", "send", payload],
    ["hooks", "send", payload, "--as", "github", "--mapping", "github", "--secret", "of-the-test"],
  ]) {
    const { code, err } = await run([...call, "--url", url]);
    expect([code, err]).toEqual([3, expect.stringContaining(`redirects to ${elsewhere()}. Nothing was sent there.`)]);
  }
  expect(await run(["api", "POST", "/hooks/agent", "--url", url])).toMatchObject({
    code: 1,
    err: `HTTP 307: it points to ${elsewhere()}, which is not followed.\n`,
  });
  expect(asked).toBe(0);
});

test("Ctrl-C ends a reply with 130 and without an error message", async () => {
  const sending = start(["send", "slow", "one two three four"]);
  await sending.until(({ err, out }) => err !== "" || out !== "" || sending.child.pid !== undefined);
  await run(["turns", "list", "--status", "running", "--agent", "slow"]);
  sending.child.kill("SIGINT");
  expect(await sending.ended).toMatchObject({ code: 130, err: "" });
});

test("chat answers each line of a pipe in one session", async () => {
  const { code, out, err } = await run(["chat", "main", "--session", "chat:talk"], { input: "Hello\n\nAnd now?\n" });
  expect({ code, out, err }).toEqual({ code: 0, out: "Hello\nAnd now?\n", err: "" });
  const { messages } = await json("sessions", "show", "chat:talk");
  expect(messages).toHaveLength(4);
});

test("chat works on a terminal, and prints how to continue", async () => {
  const talk = start(["chat", "main"], { terminal: true });
  await talk.until(({ out }) => out.includes("You talk with main"));
  talk.type("Good morning\r");
  await talk.until(({ out }) => out.split("Good morning").length > 2);
  talk.type("/exit\r");
  const { code, out } = await talk.ended;
  expect([code, out]).toEqual([0, expect.stringMatching(/To continue: agent-gateway chat main --session chat:\w+/)]);
});

test("chat in a pipe ends with the exit code of the failed turn", async () => {
  expect(await run(["chat", "bad"], { input: "Hello\n" })).toMatchObject({ code: 7, out: "" });
});

test("call calls a method, with params as text or JSON", async () => {
  expect(JSON.parse((await run(["call", "agent.status", "agentName=main"])).out)).toMatchObject({ agentName: "main" });
  const sent = await run(["call", "agent.sendMessage", "agentName=main", "message=42", "wait=true"]);
  expect(JSON.parse(sent.out)).toMatchObject({ reply: "42" });
  expect(JSON.parse((await run(["call", "agent.list", "--params", "{}"])).out).agents).toHaveLength(3);
});

test("call lists the methods and params in an error", async () => {
  const method = await run(["call", "agent.staus"]);
  expect([method.code, method.err]).toEqual([
    2,
    "There is no method agent.staus. Did you mean agent.status?\nNext: agent-gateway openrpc\n",
  ]);
  const param = await run(["call", "agent.status", "agent=main"]);
  expect([param.code, param.err]).toEqual([2, expect.stringContaining("Next: its params are agentName")]);
});

test("api sends any request with the token of its surface, and the status decides the exit code", async () => {
  const folder = emptyFolder();
  writeFileSync(join(folder, "body.json"), '{"message":"from a file"}');
  const good = await run(["api", "POST", "/api/v1/chat/send", "--data", "@body.json"], { cwd: folder });
  expect([good.code, JSON.parse(good.out).reply]).toEqual([0, "from a file"]);
  expect(JSON.parse((await run(["api", "POST", "/hooks/wake", "text=up"])).out)).toMatchObject({
    message: "event queued",
  });
  const gone = await run(["api", "get", "/api/v1/turns/turn_x", "-i"]);
  expect([gone.code, gone.out]).toEqual([5, expect.stringMatching(/^HTTP 404\n[\s\S]*turn-not-found/)]);
  expect((await run(["api", "GET", "/metrics"])).out).toContain("# HELP");
  expect(await run(["api", "FETCH", "/"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("Use one of: GET, POST"),
  });
  expect(await run(["api", "GET", "healthz"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("It begins with a slash"),
  });
});

test("openapi and openrpc print the contracts, with and without a gateway", async () => {
  expect(JSON.parse((await run(["openapi"])).out)).toHaveProperty("openapi");
  expect(
    JSON.parse((await run(["openrpc", "--offline"], { env: { GATEWAY_URL: "http://127.0.0.1:2" } })).out),
  ).toHaveProperty("openrpc");
});
