import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, type onTestFinished } from "vitest";
import { startProcess } from "#test/harness/process.ts";
import { createRest } from "#test/harness/rest.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { AGENTS, type Agent, configOf, gatewayWith, sendToDeaf } from "./programs-agents.ts";
import { isAlive, untilGone } from "./stand-ins/programs.ts";

// Tests that mostly wait for a program run in parallel.

describe.concurrent("a gateway with agents that are programs", () => {
  it("answers with the output of a command, completely and streamed", async () => {
    await using gateway = await gatewayWith(["text", "lines"]);
    for (const agent of ["text", "lines"]) {
      const body = { message: "Hello 🙂", agent };
      const reply = { status: 200, json: { reply: "> Hello 🙂" } };
      expect(await gateway.rest.call("chat.send", { body })).toMatchObject(reply);
      const events = await (await gateway.rest.stream("chat.send", { body })).all();
      const deltas = events.filter(({ event }) => event === "message.delta");
      expect(deltas.map(({ data }) => (data as { text: string }).text).join("")).toBe("> Hello 🙂");
      expect(events.at(-1)?.event).toBe("turn.completed");
    }
  });

  it("answers with the reply of an ACP agent, completely and streamed, and records its tools", async () => {
    await using gateway = await gatewayWith(["coder"]);
    const body = { message: "Hello 🙂", session_id: "a" };
    expect(await gateway.rest.call("chat.send", { body })).toMatchObject({ status: 200, json: { reply: "Hello 🙂" } });
    const events = await (await gateway.rest.stream("chat.send", { body })).all();
    expect(events.at(-1)?.event).toBe("turn.completed");
    const stream = await gateway.rest.stream("chat.send", { body: { message: "do: tool", session_id: "b" } });
    const call = { tool: "Read /etc/motd", ok: false, reason: expect.stringContaining("permissions") };
    expect((await stream.all()).find(({ event }) => event === "message.completed")?.data).toMatchObject({
      text: "Let me look.\n\nIt was reject_once.",
      tool_calls: [call],
    });
    const { result } = await createRpc(gateway.url).call("session.get", { sessionId: "b" });
    expect(result?.messages[0]).toMatchObject({ role: "assistant", toolCalls: [call] });
    const listed = await gateway.console.call("deliveries.list", { query: { limit: "1" } });
    const [{ delivery_id }] = (listed.json as { deliveries: { delivery_id: string }[] }).deliveries as [
      { delivery_id: string },
    ];
    const path = { delivery_id };
    const told = JSON.stringify((await gateway.console.call("deliveries.get", { path })).json);
    expect(told).toContain('"tool.called"');
    expect(told).toContain('"tool":"Read /etc/motd"');
  });

  it("fails a turn whose program fails, with an error without the program's text", async () => {
    await using gateway = await gatewayWith(["failing"]);
    const { status, text } = await gateway.rest.call("chat.send", { body: { message: "Hi" } });
    expect(status).toBeGreaterThanOrEqual(500);
    expect(text).toContain("the agent's program ended with 3: its standard error is in the gateway's log");
    expect(text).not.toContain("secret plans");
    expect(await gateway.logged("program.said")).toMatchObject({ program: "agents.failing", line: "secret plans" });
  });

  it("stores the text that a program wrote until its turn was cancelled, and counts it", async () => {
    await using gateway = await gatewayWith(["slow"]);
    const leaving = new AbortController();
    const stream = await gateway.rest.stream("chat.send", { body: { message: "Hi" }, signal: leaving.signal });
    let turn_id = "";
    for await (const { event, data } of stream.events) {
      turn_id = (data as { turn_id?: string }).turn_id ?? turn_id;
      if (event === "message.delta") break;
    }
    leaving.abort();
    const cancelled = await gateway.rest.call("turns.cancel", { path: { turn_id } });
    expect(cancelled.json).toMatchObject({ status: "cancelled", usage: { input: 1 } });
    const { reply, usage } = cancelled.json as { reply: string; usage: { output: number } };
    expect(reply).toMatch(/^piece 0 /);
    expect(usage.output).toBe(Math.ceil(reply.length / 4));
  });

  it("ends all processes of a turn that is cancelled", async () => {
    await using gateway = await gatewayWith(["deaf"]);
    const { pids, turnId } = await sendToDeaf(gateway, "deaf");
    await gateway.rest.call("turns.cancel", { path: { turn_id: turnId } });
    await untilGone(pids);
  });

  it("ends all processes of an unfinished turn when it stops", async () => {
    const gateway = await gatewayWith(["coder"]);
    const { pids } = await sendToDeaf(gateway, "coder", "do: deaf");
    await gateway[Symbol.asyncDispose]();
    expect(pids.filter(isAlive)).toEqual([]);
  });

  it("ends the processes of an agent whose configuration changed, and continues those of the others", async () => {
    await using gateway = await gatewayWith(["coder", "text"]);
    const pidOf = async () => {
      const sent = await gateway.rest.call("chat.send", {
        body: { message: "do: pid", agent: "coder", session_id: "a" },
      });
      return Number((sent.json as { reply: string }).reply);
    };
    const first = await pidOf();
    await gateway.reload(configOf("coder", "slow"));
    expect(await pidOf()).toBe(first);
    const { agents, ...rest } = configOf("coder", "slow");
    const acp = { ...AGENTS.coder.acp, permissions: "allow" as const };
    await gateway.reload({ ...rest, agents: { ...agents, coder: { backend: "acp", acp } } });
    await untilGone([first]);
    expect(await pidOf()).not.toBe(first);
  });
});

describe.concurrent("a gateway's process with agents that are programs", () => {
  const startWith = async (onFinished: typeof onTestFinished, ...agents: Agent[]) => {
    const key = "rest-key-of-the-process-tests";
    const config = { ...configOf(...agents) };
    const gateway = await startProcess({
      onFinished,
      config: { ...config, gateway: { ...config.gateway, rest: { auth: { keys: [{ name: "ci", key }] } } } },
    });
    return { gateway, rest: createRest(gateway.url, key) };
  };

  it("exits with 0 on SIGTERM, and so do its child processes", async ({ onTestFinished }) => {
    const { gateway, rest } = await startWith(onTestFinished, "coder");
    await using _ = gateway;
    const sent = await rest.call("chat.send", { body: { message: "do: pid" } });
    const pid = Number((sent.json as { reply: string }).reply);
    expect(isAlive(pid)).toBe(true);
    gateway.kill("SIGTERM");
    expect(await gateway.exited).toEqual({ code: 0, signal: null });
    expect(isAlive(pid)).toBe(false);
  });

  it.for(["SIGKILL", "SIGTERM and SIGINT"])("ends its programs on %s", async (signals, { onTestFinished }) => {
    const { gateway, rest } = await startWith(onTestFinished, "deaf");
    await using _ = gateway;
    const { pids } = await sendToDeaf({ rest }, "deaf");
    for (const signal of signals.split(" and ")) gateway.kill(signal as NodeJS.Signals);
    await gateway.exited;
    await untilGone(pids);
  });
});

describe.concurrent("a configuration", () => {
  it("runs its programs in its own folder", async ({ onTestFinished }) => {
    const folder = mkdtempSync(join(tmpdir(), "programs-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const key = "rest-key-of-the-process-tests";
    const config = {
      gateway: { rest: { auth: { keys: [{ name: "ci", key }] } } },
      agents: { main: { backend: "command", command: { run: ["pwd"] } } },
    };
    await using gateway = await startProcess({ cwd: folder, config, onFinished: onTestFinished });
    const sent = await createRest(gateway.url, key).call("chat.send", { body: { message: "Where?" } });
    expect(sent.json).toMatchObject({ reply: folder });
  });
});
