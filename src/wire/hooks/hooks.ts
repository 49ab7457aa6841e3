import type { Events } from "#observe/events.ts";
import { readBody } from "#wire/call/body.ts";
import { failCall, sendJsonText, type WireCall } from "#wire/call/call.ts";
import type { DoorAt } from "#wire/call/front.ts";
import { HookExchange, type HookParts } from "./hook-exchange.ts";
import type { HookReply } from "./hooks-call.ts";
import type { HooksGate } from "./hooks-gate.ts";

export type HooksDoorParts = HookParts & {
  path: string;
  gate: HooksGate;
  bodyLimit: () => number;
  events: Events;
};

const REPLAYED = { "idempotent-replayed": "true" };

/** The webhooks over HTTP: whoever passes the gate has its body read and is answered; who does not is told why not, as a problem. */
export const createHooksDoor = (parts: HooksDoorParts): DoorAt => {
  const { path, gate, bodyLimit, events } = parts;

  const fail = (call: WireCall, hook: HookExchange, error: unknown): void => {
    gate.refuse(hook, error);
    if (hook.guessing) call.endConnection();
    failCall(call, error, events);
  };

  const door = async (call: WireCall): Promise<void> => {
    call.surface = "hooks";
    const hook = new HookExchange(parts, call);
    try {
      gate.admit(hook);
      send(call, await gate.take(hook, await readBody(call, bodyLimit())));
    } catch (error) {
      fail(call, hook, error);
    }
  };

  return { prefix: path, servers: true, door, fail: (call, error) => fail(call, new HookExchange(parts, call), error) };
};

const send = (call: WireCall, { body, replayed }: HookReply): void => {
  call.turnId = (body as { turnId?: string }).turnId;
  sendJsonText(call, 200, JSON.stringify(body), replayed ? REPLAYED : undefined);
};
