import { describe, expect, test } from "vitest";
import { SECRETS, shareGateway } from "#test/harness/gateway.ts";
import { STRANGERS } from "./strangers.ts";

// The published clients of the protocol, unchanged, with the running gateway.

const gateway = await shareGateway({
  config: {
    gateway: { mcp: { enabled: true, operator: "write" }, defaultAgent: "main" },
    agents: { main: { backend: "echo" }, broken: { backend: "echo", echo: { fail: "The model is not there." } } },
  },
});

describe.each(Object.entries(STRANGERS))("%s", (_, connect) => {
  test("lists the tools of its key", async () => {
    const chat = await connect(gateway.url, SECRETS.key);
    expect(await chat.list()).toEqual(["ask_main", "ask_broken", "turn_get"]);
    const admin = await connect(gateway.url, SECRETS.adminKey);
    expect(await admin.list()).toContain("pause_agent");
  });

  test("asks an agent, continues its conversation, and reads the turn", async () => {
    const stranger = await connect(gateway.url, SECRETS.key);
    const first = await stranger.call("ask_main", { message: "Good morning" });
    expect(first.content[0]).toMatchObject({ type: "text", text: "Good morning" });
    expect(first.structuredContent).toMatchObject({ status: "completed", reply: "Good morning" });
    expect(first._meta).toMatchObject({ "agent-gateway/untrusted": true });
    const { session_id, turn_id } = first.structuredContent as Record<string, string>;
    const second = await stranger.call("ask_main", { message: "And now?", session: session_id });
    expect(second.structuredContent).toMatchObject({ session_id, reply: "And now?" });
    const read = await stranger.call("turn_get", { turn_id });
    expect(read.structuredContent).toMatchObject({ turn_id, status: "completed", reply: "Good morning" });
  });

  test("reads why a turn failed", async () => {
    const stranger = await connect(gateway.url, SECRETS.key);
    const answer = await stranger.call("ask_broken", { message: "Hello" });
    expect(answer.isError).toBe(true);
    expect(answer.content[0]?.text).toContain("The model is not there.");
  });
});
