import { resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type SomeConfig, startGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { startChatCompletions } from "./stand-ins/openai.ts";
import { stepsIn } from "./told.ts";

const KEY = "sk-live-0123456789abcdef0123456789";
const model = await startChatCompletions();
const config: SomeConfig = {
  providers: { local: { type: "openai-compatible", baseUrl: `${model.url}/v1`, apiKey: KEY } },
  tools: { files: { type: "stdio", run: [process.execPath, resolve("test/tools/stand-in.mjs")] } },
  agents: {
    main: { backend: "model", models: { fast: { provider: "local", model: "the-model" } }, tools: ["files/*"] },
  },
};
const gateway = await startGateway({ config });
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await model[Symbol.asyncDispose]();
});
const rpc = createRpc(gateway.url);

/** Sends a message whose reply requires these calls. */
async function ask(session_id: string, ...calls: { name: string; args: string }[]) {
  model.say({ calls }, { text: ["Done."] });
  const { json } = await gateway.rest.call("chat.send", { body: { message: "Hi.", session_id } });
  const { result } = await rpc.call("session.get", { sessionId: session_id });
  const steps = await stepsIn(gateway, json.turn_id, "tool.called");
  return { turnId: String(json.turn_id), calls: result.messages[0]?.toolCalls ?? [], steps };
}

describe("the content of tool calls, behind the gateway", () => {
  it("is stored with the reply and on the timeline, also for failed and refused calls", async () => {
    const said = await ask(
      "chat:content",
      { name: "files__say", args: '{"text":"hi 🙂"}' },
      { name: "files__fail", args: '{"text":"x"}' },
      { name: "files__none", args: '{"a":1}' },
      { name: "files__say", args: "[1" },
    );
    const at = expect.stringMatching(/^\d{4}-.*Z$/);
    const calls = [
      { tool: "files__say", ok: true, at, arguments: '{"text":"hi 🙂"}', result: "You said hi 🙂." },
      { tool: "files__fail", ok: false, at, arguments: '{"text":"x"}' },
      { tool: "files__none", ok: false, at, arguments: '{"a":1}' },
      { tool: "files__say", ok: false, at, arguments: "[1" },
    ].map((call) => expect.objectContaining(call));
    expect(said.calls).toHaveLength(4);
    expect(said.calls).toEqual(expect.arrayContaining(calls));
    expect(said.steps).toEqual(expect.arrayContaining(calls));
  });

  it("has no secret of the configuration, and no value of a field with a secret name", async () => {
    const args = JSON.stringify({ text: `key ${KEY}`, password: "hunter2" });
    const said = await ask("chat:secrets", { name: "files__say", args });
    expect(said.calls[0]).toMatchObject({ arguments: expect.stringContaining('"password":"[hidden]"') });
    for (const secret of [KEY, "hunter2"]) expect(JSON.stringify(said)).not.toContain(secret);
  });

  it("is not stored with recorder.toolContent: false, from the next call on", async () => {
    await gateway.reload({ ...config, recorder: { toolContent: false } });
    const off = await ask("chat:off", { name: "files__say", args: '{"text":"private"}' });
    expect(off.calls).toMatchObject([{ tool: "files__say", ok: true }]);
    expect(JSON.stringify(off)).not.toContain("private");
    await gateway.reload({ ...config, recorder: { toolContent: true } });
    expect((await ask("chat:on", { name: "files__say", args: '{"text":"seen"}' })).calls).toMatchObject([
      { result: "You said seen." },
    ]);
  });

  it("is deleted with its session, also from the timeline", async () => {
    const { turnId } = await ask("chat:gone", { name: "files__say", args: '{"text":"somebody-to-forget"}' });
    const turn = await gateway.rest.call("turns.get", { path: { turn_id: turnId } });
    await rpc.call("session.delete", { sessionId: "chat:gone" });
    const path = { delivery_id: String(turn.json.delivery_id) };
    const { text } = await gateway.rest.call("deliveries.get", { path, key: gateway.adminKey });
    expect(text).toContain('"outcome":"gone"');
    expect(text).not.toContain("somebody-to-forget");
  });
});
