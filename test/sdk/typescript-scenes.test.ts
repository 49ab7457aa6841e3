import { test } from "vitest";
import { Gateway, GatewayError } from "#generated/clients/typescript/src/index.ts";
import { type Call, play, scenes } from "./scenes.ts";

type Noun = { [name: string]: Noun } & { [name: string]: (...given: unknown[]) => unknown };

/** The fields of an error, with the names that scenes use. */
function factsOf(error: unknown): object {
  if (!(error instanceof GatewayError)) throw error;
  const { name, operation, status, detail, message, requestId, turnId, retryAfterMs, idempotencyKey } = error;
  return {
    name,
    operation,
    status,
    detail,
    text: message,
    request_id: requestId,
    turn_id: turnId,
    retry_after: retryAfterMs === undefined ? undefined : retryAfterMs / 1_000,
    idempotency_key: idempotencyKey,
  };
}

async function playCall(client: Gateway, { call, path = [], fields, read }: Call): Promise<object> {
  const names = call.split(".");
  const method = String(names.pop());
  const noun = names.reduce((of, name) => of[name] as Noun, client as unknown as Noun);
  const items: unknown[] = [];
  try {
    const made = noun[method]?.(...path, ...(fields ? [fields] : []));
    if (!read) return { answered: JSON.parse(JSON.stringify((await made) ?? null)) };
    const source = read === "text" ? (made as { text(): AsyncIterable<unknown> }).text() : made;
    for await (const item of source as AsyncIterable<{ event: string; id: string }>)
      items.push(read === "events" ? `${item.event} ${item.id}` : item);
    return { read: items };
  } catch (error) {
    return { read: items, ...factsOf(error) };
  }
}

test.each(scenes)("the client for TypeScript $title", async (scene) => {
  await play(scene, async (url, calls, maxRetries) => {
    const client = new Gateway({
      url,
      key: "secret",
      rpcToken: "rpc",
      ...(maxRetries !== undefined && { maxRetries }),
    });
    const outcomes: object[] = [];
    for (const call of calls) outcomes.push(await playCall(client, call));
    return outcomes;
  });
});
