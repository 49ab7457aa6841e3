import { describe, expect, onTestFinished, test } from "vitest";
import { createPuppet } from "#test/harness/backends.ts";
import { type SomeConfig, type Start, startGateway } from "#test/harness/gateway.ts";
import { openConnection, requestText } from "#test/harness/raw.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { skillsFolder } from "#test/harness/skills.ts";
import { openSocket } from "../ws/socket.ts";
import { configOf, FULL, LIMITED, SKILLS, seed } from "./limited.ts";

async function start(config: SomeConfig = configOf(), options: Omit<Start, "config"> = {}) {
  const gateway = await startGateway({ config, ...options });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const { rest } = gateway;
  const send = (body: object, headers: Record<string, string> = {}) =>
    rest.call("chat.send", { key: LIMITED.key, body: { message: "hi", ...body }, headers });
  return { gateway, rest, send, rpc: createRpc(gateway.url, LIMITED.rpcToken) };
}

describe("a key that is limited to the agent a", () => {
  test("MUST NOT reach the default agent by naming none, and is not told its name", async () => {
    const { send, gateway } = await start();
    const { error, problem } = await send({});
    expect([error, problem.detail]).toEqual([
      "forbidden",
      "The key `limited` may not use the default agent. Its agents are limited to `a`.",
    ]);
    await gateway.reload(configOf(["a"], { gateway: { defaultAgent: "a" } }));
    expect((await send({})).status).toBe(200);
  });

  test.each(["A", "a ", " a", "а", "ａ", "a\u0000", "a\u200b", "./a", "b/a", "*", "__proto__", "constructor", ""])(
    "MUST NOT reach an agent by the name %j",
    async (agent) => {
      const { send, rest, rpc } = await start(configOf(["a"], { agents: { A: { backend: "echo" } } }));
      expect(["forbidden", "invalid-request"]).toContain((await send({ agent })).error);
      const messages = [{ role: "user", content: "hi" }];
      const { error } = await rest.call("completions.create", { key: LIMITED.key, body: { model: agent, messages } });
      expect(["forbidden", "invalid-request"]).toContain(error);
      const answer = await rpc.call("agent.sendMessage", { agentName: agent, message: "hi" });
      expect(["forbidden", "invalid-params"]).toContain(answer.error?.data.name);
    },
  );

  test("MUST NOT learn other agents' names from an error about an agent that was removed", async () => {
    const limits = configOf(["a"]);
    const { gateway, rest } = await start(limits);
    const body = { name: "two", agents: ["a", "b"] };
    const { key } = (await gateway.console.call("keys.create", { body })).json as { key: string };
    const without = configOf(["a"], { gateway: { defaultAgent: "a" } });
    await gateway.reload({ ...without, agents: { a: { backend: "echo" }, secret: { backend: "echo" } } });
    const reply = await rest.call("chat.send", { key, body: { message: "hi", agent: "b" } });
    expect([reply.error, reply.text.includes("secret")]).toEqual(["agent-not-found", false]);
    const messages = [{ role: "user", content: "hi" }];
    const model = await rest.call("completions.create", { key, body: { model: "b", messages } });
    expect([model.error, model.text.includes("secret")]).toEqual(["agent-not-found", false]);
    // Fewer agents than before, and never more.
    expect((await rest.call("chat.send", { key, body: { message: "hi", agent: "a" } })).status).toBe(200);
    expect((await rest.call("chat.send", { key, body: { message: "hi", agent: "secret" } })).error).toBe("forbidden");
    expect((await rest.call("models.list", { key })).json.data).toMatchObject([{ id: "a" }]);
    await gateway.reload(limits);
    expect((await rest.call("chat.send", { key, body: { message: "hi", agent: "b" } })).status).toBe(200);
  });

  test("MUST NOT reach any agent when all of its agents are removed", async () => {
    const { gateway, rest } = await start();
    const body = { name: "one", agents: ["b"] };
    const { key } = (await gateway.console.call("keys.create", { body })).json as { key: string };
    await gateway.reload({
      ...configOf(["a"], { gateway: { defaultAgent: "a" } }),
      agents: { a: { backend: "echo" } },
    });
    expect((await rest.call("chat.send", { key, body: { message: "hi" } })).error).toBe("forbidden");
    expect((await rest.call("models.list", { key })).json.data).toEqual([]);
    expect((await rest.call("skills.list", { key })).json).toEqual({ skills: [], invalid: [] });
  });

  test("MUST NOT write into a session of another agent, and is not told whose it is", async () => {
    const { gateway, send, rpc } = await start();
    const { b } = await seed(gateway);
    const { error, problem } = await send({ agent: "a", session_id: b.session_id });
    expect([error, problem.detail]).toEqual(["session-conflict", "The session belongs to another agent."]);
    const answer = await rpc.call("agent.sendMessage", { agentName: "a", sessionId: b.session_id, message: "hi" });
    expect(answer.error?.data).toMatchObject({
      name: "session-conflict",
      detail: "The session belongs to another agent.",
    });
  });

  test.each(["agent:b:main", "agent:b:rest:ada", "agent:b", "agent::x"])(
    "MUST NOT take the id %s, which the gateway would make for another agent",
    async (session_id) => {
      const { gateway, send, rpc } = await start();
      expect((await send({ agent: "a", session_id })).error).toBe("forbidden");
      const answer = await rpc.call("agent.sendMessage", { agentName: "a", sessionId: session_id, message: "hi" });
      expect(answer.error?.data.name).toBe("forbidden");
      expect((await send({ agent: "a", session_id: "agent:a:rest:ada" })).status).toBe(200);
      const full = await gateway.rest.call("chat.send", { body: { message: "hi", agent: "b", session_id } });
      expect(full.status).toBe(200);
    },
  );

  test.each(["webhook", "schedule"])(
    "MUST NOT take the id of a %s's session, and is not told whether it exists",
    async (kind) => {
      const { gateway, send, rest, rpc } = await start(configOf(["a"], { skills: { dirs: [skillsFolder(SKILLS)] } }));
      const session_id = `${kind}:github`;
      const detailsOf = async () => {
        const sent = await send({ agent: "a", session_id });
        const skill = { skill_id: "of-a", agent: "a", session_id };
        const triggered = await rest.call("skills.trigger", { key: LIMITED.key, body: skill });
        const answer = await rpc.call("agent.sendMessage", { agentName: "a", sessionId: session_id, message: "hi" });
        return [sent.problem?.detail, triggered.problem?.detail, answer.error?.data.detail];
      };
      const words = `the session \`${session_id}\`, whose id is reserved for another agent. Its agents are limited to \`a\`.`;
      const absent = await detailsOf();
      const refusals = ["key", "key", "token"].map((caller) => `The ${caller} \`limited\` may not use ${words}`);
      expect(absent).toEqual(refusals);
      const full = (agent: string, id: string) =>
        gateway.rest.call("chat.send", { body: { message: "hi", agent, session_id: id } });
      expect((await full("b", session_id)).status).toBe(200);
      expect(await detailsOf()).toEqual(absent);
      // A session of its own agent.
      expect((await full("a", `${kind}:own`)).status).toBe(200);
      expect((await send({ agent: "a", session_id: `${kind}:own` })).status).toBe(200);
      const answer = await rpc.call("agent.sendMessage", { agentName: "a", sessionId: `${kind}:own`, message: "hi" });
      expect(answer.error).toBeUndefined();
    },
  );

  test("MUST NOT learn that a skill exists which its agent does not have, nor its params", async () => {
    const { send, rest } = await start(configOf(["a"], { skills: { dirs: [skillsFolder(SKILLS)] } }));
    const trigger = (skill_id: string) =>
      rest.call("skills.trigger", { key: LIMITED.key, body: { skill_id, agent: "a" } });
    const [other, none, unknown] = [await trigger("of-b"), await trigger("of-none"), await trigger("of-zz")];
    const wordsOf = ({ text }: typeof other, id: string) =>
      text
        .replace(/req_\w+/, "")
        .replace(/ (?:Did you mean|There are) [^.]*[.?]/, "")
        .replaceAll(id, "");
    expect(other.error).toBe("skill-not-found");
    expect(wordsOf(other, "of-b")).toBe(wordsOf(unknown, "of-zz"));
    expect(wordsOf(none, "of-none")).toBe(wordsOf(unknown, "of-zz"));
    expect((await send({ agent: "a", skill_ids: ["of-b"] })).error).toBe("skill-not-found");
    expect((await trigger("of-a")).status).toBe(200);
  });

  test("MUST NOT get the turn of another agent by an idempotency key that had its name", async () => {
    const headers = { "idempotency-key": "monday" };
    // The default agent changes, and with it what the same body means.
    const first = await start(configOf(["b"]));
    expect((await first.send({}, headers)).status).toBe(200);
    await first.gateway.reload(configOf(["a"], { gateway: { defaultAgent: "a" } }));
    expect((await first.send({}, headers)).error).toBe("forbidden");
    expect((await first.send({}, { "idempotency-key": "tuesday" })).status).toBe(200);
  });

  test("MUST NOT get a reply of another agent by a repeated message over RPC", async () => {
    const { gateway, rpc } = await start(configOf(["a", "b"]));
    const params = { agentName: "b", message: "hi", idempotencyKey: "monday", wait: true };
    expect((await rpc.call("agent.sendMessage", params)).result).toMatchObject({ reply: "hi" });
    await gateway.reload(configOf(["a"]));
    expect((await rpc.call("agent.sendMessage", params)).error?.data.name).toBe("forbidden");
  });

  test("MUST NOT raise itself: it makes, rotates and revokes no key, and an admin key neither", async () => {
    const { gateway, rest } = await start();
    const { json } = await gateway.console.call("keys.create", { body: { name: "widget", agents: ["a"] } });
    const path = { key_id: String(json.key_id) };
    for (const key of [LIMITED.key, String(json.key), gateway.adminKey]) {
      expect((await rest.call("keys.create", { key, body: { name: "more" } })).error).toBe("forbidden");
      expect((await rest.call("keys.rotate", { key, path, body: {} })).error).toBe("forbidden");
      expect((await rest.call("keys.revoke", { key, path })).error).toBe("forbidden");
      expect((await rest.call("keys.list", { key })).error).toBe("forbidden");
    }
    for (const body of [{ agents: ["a", "b"] }, { agents: null }, { rate_limit: null }, { scopes: ["admin"] }])
      expect((await gateway.console.call("keys.rotate", { path, body })).error).toBe("invalid-request");
    const rotated = (await gateway.console.call("keys.rotate", { path, body: {} })).json;
    expect(rotated.agents).toEqual(["a"]);
    const body = { message: "hi", agent: "b" };
    expect((await rest.call("chat.send", { key: String(rotated.key), body })).error).toBe("forbidden");
  });
});

describe("a reload that takes an agent away from a key or token", () => {
  async function startPlayed(agents: readonly string[]) {
    const puppet = createPuppet();
    const on = await start(configOf(agents), { makeBackend: () => puppet.backend });
    return { ...on, puppet };
  }

  test("MUST end its streams, which resume only for its agents; a stream of another key goes on", async () => {
    const { gateway, rest, puppet } = await startPlayed(["a", "b"]);
    const place = { method: "POST", path: "/api/v1/chat/send" };
    const follow = async (key: string) => {
      const connection = await openConnection(gateway.url);
      onTestFinished(() => void connection.socket.destroy());
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
      const body = JSON.stringify({ message: "hi", agent: "b", stream: true });
      connection.write(requestText(place, headers, body));
      await connection.head(place);
      const turn = await puppet.next();
      await connection.until((text) => text.includes("turn.started"));
      return { turn, whole: () => connection.until((text) => text.endsWith("0\r\n\r\n")) };
    };
    const [lost, kept] = [await follow(LIMITED.key), await follow(FULL.key)];
    await gateway.reload(configOf(["a"]));
    expect(await lost.whole()).not.toContain("turn.completed");
    for (const { turn } of [lost, kept]) turn.end();
    expect(await kept.whole()).toContain("turn.completed");
    const { turnId } = lost.turn.turn;
    const resume = { key: LIMITED.key, path: { turn_id: turnId }, headers: { "last-event-id": "1" } };
    expect((await rest.call("turns.events", resume)).error).toBe("turn-not-found");
  });

  test("MUST close a connection with subscriptions, and one that reads a reply of the agent", async () => {
    const { gateway, puppet } = await startPlayed(["a", "b"]);
    const open = () => openSocket(gateway, { token: LIMITED.rpcToken });
    const sockets = [await open(), await open(), await open(), await open()];
    const [byAgent, bySender, ofA, idle] = sockets;
    await byAgent?.call("rpc.subscribe", { agents: ["b"] });
    await bySender?.call("agent.sendMessage", { agentName: "b", message: "hi", stream: true });
    await ofA?.call("rpc.subscribe", { agents: ["a"] });
    const turn = await puppet.next();
    await gateway.reload(configOf(["a"]));
    for (const socket of [byAgent, bySender, ofA]) expect((await socket?.closed)?.code).toBe(4403);
    turn.say("secret");
    turn.end();
    expect(JSON.stringify(bySender?.pushes)).not.toContain("secret");
    // A connection without subscriptions stays, with fewer rights.
    expect((await idle?.refusal("agent.status", { agentName: "b" }))?.name).toBe("forbidden");
    expect((await idle?.refusal("rpc.subscribe", { agents: ["b"] }))?.name).toBe("forbidden");
    await idle?.call("rpc.subscribe", { agents: ["a"] });
    for (const socket of sockets) socket[Symbol.dispose]();
  });

  test("MUST limit a connection that was not limited before, and end its stream of the gateway", async () => {
    const { gateway } = await start();
    using socket = await openSocket(gateway, { token: FULL.rpcToken });
    await socket.call("rpc.subscribe", { gateway: null });
    const next = configOf();
    const tokens = next.gateway?.rpc?.auth?.tokens?.map((token) => ({ ...token, agents: ["a"] })) ?? [];
    await gateway.reload({ ...next, gateway: { ...next.gateway, rpc: { auth: { tokens } } } });
    expect((await socket.closed).code).toBe(4403);
  });

  test("gives more agents at once, without closing anything", async () => {
    const { gateway } = await start(configOf(["a"]));
    using socket = await openSocket(gateway, { token: LIMITED.rpcToken });
    await socket.call("rpc.subscribe", { agents: ["a"] });
    await gateway.reload(configOf(["a", "b"]));
    await socket.call("rpc.subscribe", { agents: ["b"] });
    await gateway.rest.call("chat.send", { body: { message: "hello", agent: "b" } });
    await socket.pushed("turn.completed");
  });
});

describe("a subscription to a session", () => {
  test("MUST NOT see a session of another agent that gets the id of a deleted one", async () => {
    const { gateway, rpc } = await start();
    const full = createRpc(gateway.url, FULL.rpcToken);
    const sessionId = "chat:reused";
    await rpc.call("agent.sendMessage", { agentName: "a", sessionId, message: "mine", wait: true });
    using first = await openSocket(gateway, { token: LIMITED.rpcToken });
    const { sessions } = await first.call<{ sessions: Record<string, string> }>("rpc.subscribe", {
      sessions: { [sessionId]: null },
    });
    await rpc.call("session.delete", { sessionId });
    await first.pushed("session.deleted");
    // A client that was away resumes with its cursor: nothing is there yet, so the agent is not known.
    using second = await openSocket(gateway, { token: LIMITED.rpcToken });
    await second.call("rpc.subscribe", { sessions: { [sessionId]: sessions[sessionId] } });
    using witness = await openSocket(gateway, { token: FULL.rpcToken });
    await witness.call("rpc.subscribe", { sessions: { [sessionId]: sessions[sessionId] } });
    await full.call("agent.sendMessage", { agentName: "b", sessionId, message: "theirs", wait: true });
    await witness.pushed("turn.completed");
    await full.call("session.delete", { sessionId });
    await witness.pushed("session.deleted");
    await rpc.call("agent.sendMessage", { agentName: "a", sessionId: "chat:other", message: "mine again", wait: true });
    await second.call("rpc.subscribe", { sessions: { "chat:other": null } });
    expect(second.names().filter((name) => name !== "stream.reset")).toEqual([]);
    expect(JSON.stringify([first.pushes, second.pushes])).not.toContain("theirs");
  });

  test("MUST NOT learn that a session of another agent exists, with or without a cursor", async () => {
    const { gateway } = await start();
    const full = createRpc(gateway.url, FULL.rpcToken);
    const [foreign, absent] = ["agent:b:rest:ada", "agent:b:rest:bob"];
    await full.call("agent.sendMessage", { agentName: "b", sessionId: foreign, message: "theirs", wait: true });
    using witness = await openSocket(gateway, { token: FULL.rpcToken });
    const { sessions } = await witness.call<{ sessions: Record<string, string> }>("rpc.subscribe", {
      sessions: { [foreign]: null },
    });
    const real = String(sessions[foreign]);
    const [, epoch] = Buffer.from(real, "base64url").toString().split(".");
    const cursors = [real, ...[`s.${epoch}.0.0`, `s.${epoch}.0.1`, "s.other.1.1"].map(base64Of)];
    const seenOf = async (sessionId: string) => {
      using socket = await openSocket(gateway, { token: LIMITED.rpcToken });
      const answers: unknown[] = [await socket.refusal("rpc.subscribe", { sessions: { [sessionId]: null } })];
      for (const cursor of cursors) {
        answers.push(await socket.call("rpc.subscribe", { sessions: { [sessionId]: cursor } }));
        await full.call("agent.sendMessage", { agentName: "b", sessionId: foreign, message: "more", wait: true });
        await witness.pushed("turn.completed");
        answers.push(await socket.refusal("rpc.subscribe", { sessions: { [sessionId]: null } }));
      }
      // The pushes of an own session come after all others.
      await socket.call("rpc.subscribe", { agents: ["a"] });
      await gateway.rest.call("chat.send", { body: { message: "own", agent: "a", session_id: `own of ${sessionId}` } });
      await socket.pushed("turn.completed");
      const pushes = socket.pushes.filter(({ method }) => method === "stream.reset");
      return JSON.stringify([answers, pushes])
        .replace(/"requestId":"\w+"/g, "")
        .replaceAll(sessionId, "ID");
    };
    const seen = await seenOf(foreign);
    expect(seen).toBe(await seenOf(absent));
    expect(seen).toContain("stream.reset");
  });

  test("sees a session of its own agent that gets the id of a deleted one", async () => {
    const { gateway, rpc } = await start();
    const sessionId = "chat:reused";
    await rpc.call("agent.sendMessage", { agentName: "a", sessionId, message: "first", wait: true });
    using first = await openSocket(gateway, { token: LIMITED.rpcToken });
    const { sessions } = await first.call<{ sessions: Record<string, string> }>("rpc.subscribe", {
      sessions: { [sessionId]: null },
    });
    await rpc.call("session.delete", { sessionId });
    using second = await openSocket(gateway, { token: LIMITED.rpcToken });
    await second.call("rpc.subscribe", { sessions: { [sessionId]: sessions[sessionId] } });
    await rpc.call("agent.sendMessage", { agentName: "a", sessionId, message: "second", wait: true });
    expect((await second.pushed("turn.completed")).reply).toBe("second");
  });
});

function base64Of(text: string): string {
  return Buffer.from(text).toString("base64url");
}
