import { expect, test } from "vitest";
import {
  chatCall,
  filledLength,
  hookTurnCall,
  messageCall,
  PASSING_SESSION,
  requestText,
  SAME_SESSION,
  statusCall,
  wakeCall,
} from "./calls.ts";

test("messages have a body of 200 bytes over every surface, whatever else is in them", () => {
  const messages = [messageCall(), messageCall(SAME_SESSION), messageCall(PASSING_SESSION)];
  for (const { body } of [chatCall(0), chatCall(1_000), ...messages, wakeCall(), hookTurnCall()])
    expect(filledLength(body)).toBe(200);
});

test("what a load fills in counts as long as it will be", () => {
  expect(filledLength("ü {session}{passing} {guess} {guess}")).toBe(3 + 7 + 7 + 1 + 13 + 1 + 13);
  expect(filledLength("{sessions} guess")).toBe(16);
});

test("each event and each turn of a webhook says something else", () => {
  expect(JSON.parse(wakeCall().body)).toMatchObject({ text: expect.stringContaining("{guess}") });
  expect(JSON.parse(hookTurnCall().body)).toMatchObject({ message: expect.stringContaining("{guess}") });
});

test("a session is left to the load to fill in, where there are several", () => {
  expect(JSON.parse(chatCall(1_000).body)).toMatchObject({ session_id: "bench:{session}" });
  expect(JSON.parse(chatCall(0).body)).not.toHaveProperty("session_id");
  expect(JSON.parse(messageCall().body)).toMatchObject({ params: { sessionId: "bench:{session}" } });
  expect(JSON.parse(messageCall(SAME_SESSION).body)).toMatchObject({ params: { sessionId: "bench:one" } });
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
