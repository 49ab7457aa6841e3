import type { Bundle } from "./bundle.ts";
import { type JsonObject, literal, object, text } from "./json.ts";
import { comment, header } from "./output.ts";
import { SpecError } from "./spec-files.ts";
import { printAliases, printShapes } from "./types.ts";

/** One message that the WebSocket pushes. */
export type Push = { name: string; summary: string; payload: JsonObject };

/** The prefix of shapes that are not pushes: the params of a call of the WebSocket, or its result. */
const CALL = "rpc.";

export function readPushes(bundle: Bundle): Push[] {
  return readMessages(bundle).filter(({ name }) => !name.startsWith(CALL));
}
export function readSocketCalls(bundle: Bundle): Push[] {
  return readMessages(bundle).filter(({ name }) => name.startsWith(CALL));
}

function readMessages({ document }: Bundle): Push[] {
  const pushes: Push[] = [];
  for (const channel of Object.values(object(document.channels))) {
    for (const [name, message] of Object.entries(object(object(channel).messages))) {
      const { name: given, payload, summary } = object(message);
      if (given !== name) throw new SpecError("specs/pushes.yaml", `the message ${name} is named ${text(given)}`);
      pushes.push({ name, summary: text(summary), payload: object(payload) });
    }
  }
  return pushes;
}

export async function pushTypes({ components }: Bundle, pushes: Push[]): Promise<string> {
  const shapes = components.schemas ?? {};
  const payloads = Object.fromEntries(pushes.map(({ name, payload }) => [`push.${name}`, payload]));
  const lines = pushes.map(
    ({ name, summary }) =>
      `${comment(summary, "  ")}  ${literal(name)}: components["schemas"][${literal(`push.${name}`)}];`,
  );
  return [
    header("pushes.yaml"),
    "",
    await printShapes({ ...shapes, ...payloads }),
    printAliases(Object.keys(shapes)),
    "",
    "/** What each push holds, by its name. */",
    `export interface Pushes {\n${lines.join("\n")}\n}`,
    "",
    "export type PushName = keyof Pushes;",
    "",
    "/** A push as the socket carries it. */",
    `export type Push = { [Name in PushName]: { jsonrpc: "2.0"; method: Name; params: Pushes[Name] } }[PushName];`,
    "",
  ].join("\n");
}
