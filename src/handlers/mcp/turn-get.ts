import type { Core } from "#core/core.ts";
import { turnFor } from "#core/reach.ts";
import type { Turn as ShownTurn } from "#generated/rest-types.ts";
import { noteOf, textOfShown } from "./answers.ts";
import { type Bodies, run } from "./operator-tools.ts";
import { sourceOf } from "./sources.ts";
import { checkedBy, type PlainTool } from "./tool.ts";
import { waitFor } from "./turn-tools.ts";

const SOURCE = sourceOf("turn_get");
const { properties, ...others } = SOURCE.inputSchema as { properties: Record<string, object> };
const INPUT = {
  ...others,
  properties: {
    ...properties,
    wait_seconds: {
      type: "integer",
      minimum: 0,
      maximum: 50,
      default: 0,
      description: "The longest time to wait for the end of the turn.",
    },
  },
};
type TurnQuery = { turn_id: string; wait_seconds: number };

/** The tool that reads a turn, and waits for its end. Who may read a turn is decided as in REST. */
export function turnGet(core: Core, bodies: Bodies): PlainTool {
  const { name, title, description, hint, isTrusted, outputSchema } = SOURCE;
  return {
    ...{ name, title, description, hint, isTrusted, outputSchema, inputSchema: INPUT, startsTurn: false },
    async answer(args, call) {
      const { turn_id, wait_seconds } = await checkedBy<TurnQuery>(INPUT, args);
      const turn = await turnFor(core.turns, call.caller, turn_id);
      const waitMs = Math.min(wait_seconds * 1_000, call.waitMs);
      await waitFor(core, turn, waitMs, call);
      const shown = (await run(SOURCE, bodies, { turn_id }, call)) as ShownTurn;
      const note = shown.status === "completed" ? noteOf(shown.session_id) : undefined;
      return { text: textOfShown(shown, core.hide), note, structured: shown };
    },
  };
}
