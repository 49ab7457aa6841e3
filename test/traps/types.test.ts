import { describe, expectTypeOf, test } from "vitest";
import type { RestOperations, ChatRequest as WrittenChatRequest } from "#generated/clients/rest.ts";
import type { Config, ConfigFile } from "#generated/config-types.ts";
import type { ChatRequest as CheckedChatRequest, RestReplies, TurnEvent } from "#generated/rest-handlers.ts";

// Held by `npm run types`; here they only run.

describe("openapi-typescript makes properties with a default required: right for handlers, wrong for clients", () => {
  test("so a handler finds them, and a client may leave them out", () => {
    expectTypeOf<CheckedChatRequest["stream"]>().toEqualTypeOf<boolean>();
    expectTypeOf<{ message: string }>().not.toExtend<CheckedChatRequest>();
    expectTypeOf<WrittenChatRequest["stream"]>().toEqualTypeOf<boolean | undefined>();
    expectTypeOf<{ message: string }>().toExtend<WrittenChatRequest>();
  });

  test("so the gateway finds them in its configuration, and a person may leave them out", () => {
    expectTypeOf<Config["limits"]["turns"]>().toEqualTypeOf<number>();
    expectTypeOf<{ agents: { main: { backend: "echo" } } }>().toExtend<ConfigFile>();
    expectTypeOf<{ agents: { main: { backend: "echo" } } }>().not.toExtend<Config>();
  });
});

describe("JSON and event-stream under one 200 become a union of both", () => {
  test("so a handler says which it answers, and a client calls one or the other", () => {
    type Reply = RestReplies["chat.send"];
    expectTypeOf<Extract<Reply, { as: "events" }>["body"]>().toEqualTypeOf<AsyncIterable<TurnEvent>>();
    expectTypeOf<Extract<Reply, { as: "completed" }>["body"]["status"]>().toEqualTypeOf<"completed">();
    expectTypeOf<RestOperations["chat.send"]["reply"]>().not.toExtend<string>();
    expectTypeOf<Extract<RestOperations["chat.send"]["reply"], string>>().toBeNever();
  });
});
