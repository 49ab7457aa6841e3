import type { Agent } from "undici";
import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import { newId } from "#kit/ids.ts";
import { retryAfterOf } from "#kit/retry-after.ts";
import type { Backend, BackendTurn, Chunk, Used } from "../backend.ts";
import { createBreaker, guarded } from "../breaker.ts";
import { type Answer, ask, type Body, MIB, openAgent, piecesOf, targetOf, wholeOf } from "../outbound/ask.ts";
import { eventsOf } from "../outbound/server-events.ts";
import { isWorthAnotherTry, statusWords } from "../outbound/words.ts";
import { summaryOf } from "../summary.ts";
import { readPiece, summaryDocument, type TurnDocument, turnDocument } from "../turn-document.ts";
import { untold } from "../untold.ts";
import { readEnd, readFailure, readWhole, type Want, WHO } from "./documents.ts";
import { createHeaders, type HttpSettings } from "./request.ts";

export type { HttpSettings };

/** The longest whole answer: 4 MiB of text, as JSON may write it; and of a stream, where each piece has an event around it. */
const WHOLE_BYTES = 16 * MIB;
const STREAM_BYTES = 32 * MIB;
const FAILURE_BYTES = 64 * 1024;
/** How long an answer that is no reply, or whose reply is over, is waited for: its connection is worth that much. */
const REST_MS = 1_000;
const ACCEPT = { reply: "text/event-stream, application/json, text/plain;q=0.5", summary: "application/json" } as const;
const NOTHING: Used = { input: 0, output: 0 };

type Service = {
  agent: Agent;
  target: ReturnType<typeof targetOf>;
  headers: ReturnType<typeof createHeaders>;
  clock: Clock;
};

type Asked = { want: Want; id: string; document: TurnDocument | Promise<TurnDocument> };

/** An agent that is a web service: each turn is a POST, as specs/agent-http.yaml has it. */
export const createHttpBackend = (settings: HttpSettings): Backend => {
  const { clock } = settings;
  const agent = openAgent(settings.connectMs);
  const breaker = createBreaker(clock);
  const service: Service = { agent, target: targetOf(settings.url), headers: createHeaders(settings), clock };
  return {
    kind: "http",
    asksOutside: true,
    models: settings.models,
    run: (turn: BackendTurn, outer) =>
      guarded(breaker, WHO, outer, (signal) =>
        reply(service, { want: "reply", id: turn.turnId, document: turnDocument(turn, settings) }, signal),
      ),
    async summarise(messages, outer, tell) {
      const asked: Asked = {
        want: "summary",
        id: newId("req", clock.now()),
        document: summaryDocument(settings.agent, messages),
      };
      return await summaryOf(
        guarded(breaker, WHO, outer, (signal) => reply(service, asked, signal)),
        tell,
      );
    },
    restMs: () => breaker.restMs(),
    close: () => agent.close(),
  };
};

async function* reply(service: Service, { want, id, document }: Asked, signal: AbortSignal): AsyncGenerator<Chunk> {
  const { agent, target, headers, clock } = service;
  const told = await document;
  const body = JSON.stringify(told);
  const sent = headers(id, ACCEPT[want], body, told.hops);
  const answer = await ask(agent, WHO, { ...target, method: "POST", headers: sent, body }, signal);
  let used: Used | undefined;
  for await (const chunk of chunksOf(want, answer, clock)) {
    if ("usage" in chunk) used = chunk.usage;
    yield chunk;
  }
  if (!used) yield untold(WHO);
  yield { usage: used ?? NOTHING };
}

async function* chunksOf(want: Want, answer: Answer, clock: Clock): AsyncGenerator<Chunk> {
  const { status, headers, body } = answer;
  if ((headers["content-encoding"] ?? "identity") !== "identity") {
    body.discard();
    throw new BackendError(`${WHO} encoded its answer, which it was asked not to`);
  }
  const type = mediaTypeOf(headers["content-type"]);
  if (status < 200 || status >= 300) throw await failureOf(want, type, answer, clock);
  if (type === "text/event-stream" && want === "reply") yield* streamed(body, clock);
  else yield* readWhole(want, status, type, await wholeOf(WHO, body, WHOLE_BYTES));
}

async function* streamed(body: Body, clock: Clock): AsyncGenerator<Chunk> {
  for await (const events of eventsOf(WHO, piecesOf(WHO, unended(body), STREAM_BYTES))) {
    for (const event of events) {
      if (event === "comment") yield ALIVE;
      else if (event.name === "done") {
        yield* readEnd(parsed(event.data));
        void letGoBy(body, clock);
        return;
      } else yield PIECES.has(event.name) ? readPiece(parsed(event.data)) : ALIVE;
    }
  }
  throw new BackendError(`${WHO} ended its stream without \`done\``, { retryable: true });
}

/** An answer that is no reply. Its head has told enough, so its body is not waited for as long as a reply is. */
const failureOf = async (want: Want, type: string, answer: Answer, clock: Clock): Promise<BackendError> => {
  const { status, headers, body } = answer;
  const stopWaiting = clock.after(REST_MS, () => body.discard());
  const text = await wholeOf(WHO, body, FAILURE_BYTES).catch(() => undefined);
  stopWaiting();
  if (want === "summary" && NO_SUMMARIES.has(status))
    return new BackendError(`${WHO} does not write summaries (it answered ${status})`);
  const retryAfterMs = retryAfterOf(String(headers["retry-after"] ?? ""), clock.now());
  const { detail, retryable = isWorthAnotherTry(status) } = readFailure(type, text);
  const words = detail === undefined ? statusWords(status) : `answered ${status}: ${detail}`;
  return new BackendError(`${WHO} ${words}`, { retryable, ...(retryAfterMs !== undefined && { retryAfterMs }) });
};

/** The same, which stays open when its reader leaves. */
const unended = (body: Body): AsyncIterable<Buffer> => ({
  [Symbol.asyncIterator]: () => ({
    next: async () => {
      const value = await body.next();
      return value ? { done: false, value } : { done: true, value };
    },
  }),
});

/** A reply is over before its body: a short rest of that is read, so that the connection can be used again. */
const letGoBy = async (body: Body, clock: Clock): Promise<void> => {
  const stopWaiting = clock.after(REST_MS, () => body.discard());
  await wholeOf(WHO, body, FAILURE_BYTES).catch(() => {});
  stopWaiting();
};

const ALIVE: Chunk = { alive: true };
/** Events that are a piece of the reply; others are a sign of life. */
const PIECES = new Set(["", "message", "delta", "usage", "model", "error"]);
/** What a service answers that does not know the request for a summary. */
const NO_SUMMARIES = new Set([400, 404, 405, 415, 422, 501]);

const parsed = (data: string): unknown => {
  try {
    return JSON.parse(data);
  } catch {
    throw new BackendError(`${WHO} sent an event whose data is no JSON`);
  }
};

const mediaTypeOf = (header: string | string[] | undefined): string => {
  const text = String(header ?? "");
  const end = text.indexOf(";");
  return (end < 0 ? text : text.slice(0, end)).trim().toLowerCase();
};
