import { expect, test } from "vitest";
import { chatCall, filledLength, messageCall, requestText, statusCall } from "./calls.ts";

test("messages have a body of 200 bytes over either surface, whatever else is in them", () => {
  for (const { body } of [chatCall(0), chatCall(1_000), messageCall(), messageCall({ isSpread: false })])
    expect(filledLength(body)).toBe(200);
});

test("a session is left to the load to fill in, where there are several", () => {
  expect(JSON.parse(chatCall(1_000).body)).toMatchObject({ session_id: "bench:{session}" });
  expect(JSON.parse(chatCall(0).body)).not.toHaveProperty("session_id");
  expect(JSON.parse(messageCall().body)).toMatchObject({ params: { sessionId: "bench:{session}" } });
  expect(JSON.parse(messageCall({ isSpread: false }).body)).toMatchObject({ params: { sessionId: "bench:one" } });
});

test("a request announces the length that its body has when it is filled in", () => {
  const text = requestText(messageCall(), "127.0.0.1:1234");
  const [head = "", body = ""] = text.replace("{session}", "0000042").split("\r\n\r\n");
  expect(head.split("\r\n")[0]).toBe("POST /rpc HTTP/1.1");
  expect(head).toContain("host: 127.0.0.1:1234");
  expect(head).toContain(`content-length: ${Buffer.byteLength(body)}`);
  expect(JSON.parse(body)).toMatchObject({ method: "agent.sendMessage", params: { sessionId: "bench:0000042" } });
});

test("a call of RPC is an envelope with its token", () => {
  const { path, headers, body } = statusCall();
  expect(path).toBe("/rpc");
  expect(headers.authorization).toMatch(/^Bearer ./);
  expect(JSON.parse(body)).toEqual({ jsonrpc: "2.0", id: 1, method: "agent.status", params: { agentName: "main" } });
});
