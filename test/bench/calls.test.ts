import { expect, test } from "vitest";
import { chatCall, hookTurnCall, messageCall, PASSING_SESSION, requestText, SAME_SESSION, wakeCall } from "./calls.ts";

const MESSAGES = [messageCall(), messageCall(SAME_SESSION), messageCall(PASSING_SESSION)];

test.each([chatCall(0), chatCall(1_000), ...MESSAGES, wakeCall(), hookTurnCall()])(
  "$path sends 200 bytes, and announces them, when what a load fills in is there",
  (call) => {
    const text = requestText(call, "127.0.0.1:1234");
    const filled = text
      .replaceAll("{session}", "0000042")
      .replaceAll("{passing}", "0000042")
      .replaceAll("{guess}", "0010000000007");
    const [head = "", body = ""] = filled.split("\r\n\r\n");
    expect(Buffer.byteLength(body)).toBe(200);
    expect(head).toContain("content-length: 200");
    expect(() => JSON.parse(body)).not.toThrow();
  },
);
