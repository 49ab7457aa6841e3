import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { OpenAiHandlers } from "#generated/openai-handlers.ts";
import { findModel, listModels } from "./agent-models.ts";
import { completions } from "./completions.ts";

/** The body of every operation for clients of OpenAI. One that is missing does not compile. */
export function openAiHandlers(core: Core) {
  return {
    ...completions(core),
    "models.list": async (_, { caller }) => ({ object: "list", data: listModels(core, caller) }),
    "models.get": async ({ path }, { caller }) => findModel(core, caller, path.model),
  } satisfies OpenAiHandlers<CallContext>;
}
