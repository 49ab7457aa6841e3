import type { Core } from "#core/core.ts";
import { openAiHandlers } from "#handlers/openai/table.ts";
import { failCall, type WireCall } from "#wire/call/call.ts";
import { asOpenAiError, endWithOpenAiError, OPENAI_FRAMING, validateOpenAi } from "#wire/openai/openai.ts";
import { createRestDoor, type RestDoorParts } from "#wire/rest/rest.ts";

type OpenAiParts = Omit<RestDoorParts, "surface" | "handlers" | "style" | "validate">;

/** The door for clients of OpenAI: REST's, with other operations, another contract, and errors in the shape that they read. */
export function createOpenAiSurface(core: Core, parts: OpenAiParts) {
  return {
    door: createRestDoor({
      ...parts,
      surface: "openai",
      handlers: openAiHandlers(core),
      style: { framing: OPENAI_FRAMING, wording: asOpenAiError, sendLate: endWithOpenAiError },
      validate: validateOpenAi,
    }),
    fail: (call: WireCall, error: unknown): void => failCall(call, error, asOpenAiError, endWithOpenAiError),
  };
}
