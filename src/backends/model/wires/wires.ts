import { anthropic } from "./anthropic.ts";
import { chat } from "./chat.ts";
import { google } from "./google.ts";
import { responses } from "./responses.ts";
import { isObject, type Kind, type Wire } from "./wire.ts";

export const WIRES = { chat, responses, anthropic, google } satisfies Record<string, Wire>;

export type WireName = keyof typeof WIRES;

/** What the data of an event are. */
export const kindOf = (wire: Wire, data: string): Kind => {
  let event: unknown;
  try {
    event = JSON.parse(data);
  } catch {
    return { error: undefined };
  }
  return isObject(event) ? wire(event) : { error: undefined };
};
