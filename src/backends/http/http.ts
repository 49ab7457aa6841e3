import type { Agent } from "undici";
import { cleanSentence } from "#kit/clean-words.ts";
import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import { HOPS_HEADER } from "#kit/hops.ts";
import { newId } from "#kit/ids.ts";
import { sign, signingKeyOf } from "#kit/signing.ts";
import type { StopSignal } from "#kit/stop-signal.ts";
import { type Answer, ask, credentialsOf, MIB, openAgent, targetOf } from "#outbound/ask.ts";
import { eventsOf, type Sent } from "#outbound/server-events.ts";
import { isWorthAnotherTry, statusWords } from "#outbound/words.ts";
import type { Backend, BackendTurn, Chunk } from "../backend.ts";
import { Breaker } from "../breaker.ts";
import { isObject, jsonOf } from "../json.ts";
import { summaryOf } from "../summary.ts";
import { NOTHING, usageUnknown } from "../token-counts.ts";
import { readPiece, summaryDocument, type TurnDocument, turnDocument } from "../turn-document.ts";

export type HttpSettings = {
  /** The agent's name in the requests. */
  agent: string;
  /** The model names that it accepts. */
  models: readonly string[] | undefined;
  url: string;
  headers: Readonly<Record<string, string>>;
  /** The key for signatures: each request is signed if it is set. */
  secret: string | undefined;
  /** True if each turn includes the conversation so far: not for an agent that stores it itself. */
  history: boolean;
  connectMs: number;
  clock: Clock;
};

/** The kind of answer: the reply of a turn, or a summary of a conversation. */
type Want = "reply" | "summary";

const WHO = "the agent's service";

/** The longest whole answer: 4 MiB of text in JSON. The next limit is for a stream, where each piece has an event around it. */
const WHOLE_BYTES = 16 * MIB;
const STREAM_BYTES = 32 * MIB;
const ACCEPT = { reply: "text/event-stream, application/json, text/plain;q=0.5", summary: "application/json" } as const;

type Service = {
  agent: Agent;
  target: ReturnType<typeof targetOf>;
  headers: ReturnType<typeof createHeaders>;
  breaker: Breaker;
  clock: Clock;
};

type Asking = { want: Want; id: string; document: () => TurnDocument | Promise<TurnDocument> };

/** An agent that is a web service: each turn is a POST, as described in specs/agent-http.yaml. */
export function createHttpBackend(settings: HttpSettings): Backend {
  const { clock, connectMs, models, url } = settings;
  const agent = openAgent(connectMs);
  const breaker = new Breaker(clock);
  const service: Service = { agent, target: targetOf(url), headers: createHeaders(settings), breaker, clock };
  return {
    kind: "http",
    asksOutside: true,
    models,
    run: (turn: BackendTurn, signal) =>
      reply(service, { want: "reply", id: turn.turnId, document: () => turnDocument(turn, settings) }, signal),
    async summarise(messages, signal, tell) {
      const document = () => summaryDocument(settings.agent, messages);
      return await summaryOf(
        reply(service, { want: "summary", id: newId("req", clock.now()), document }, signal),
        tell,
      );
    },
    restMs: () => breaker.restMs(),
    close: () => agent.close(),
  };
}

/** The headers of each request: those of the configuration, then those of the contract, which replace them. */
function createHeaders({ url, headers, secret, clock }: HttpSettings) {
  const own = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  const key = secret === undefined ? undefined : signingKeyOf(secret);
  const always: Record<string, string> = {
    "user-agent": "agent-gateway",
    ...credentialsOf(url),
    ...own,
    "content-type": "application/json",
  };
  return (id: string, accept: string, body: string, hops: number): Record<string, string> => {
    const made = Object.assign({}, always, { accept, "idempotency-key": id, [HOPS_HEADER]: String(hops) });
    if (!key) return made;
    const timestamp = String(Math.floor(clock.now() / 1_000));
    const signature = sign(key, id, timestamp, body);
    return Object.assign(made, { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature });
  };
}

async function* reply(service: Service, asking: Asking, signal: StopSignal): AsyncGenerator<Chunk, void> {
  const { agent, target, headers, breaker, clock } = service;
  const { want, id, document } = asking;
  const call = breaker.begin(WHO, signal);
  try {
    const told = await document();
    const body = JSON.stringify(told);
    const sent = headers(id, ACCEPT[want], body, told.hops);
    const answer = await ask(agent, WHO, { method: "POST", ...target, headers: sent, body }, signal);
    const { status } = answer;
    const type = mediaTypeOf(answer.headers["content-type"]);
    if (status < 200 || status >= 300) throw await failureOf(want, type, answer, clock);
    const isStream = type === "text/event-stream" && want === "reply";
    const chunks = isStream ? streamed(answer, clock) : readWhole(want, status, type, await answer.text(WHOLE_BYTES));
    let hasUsage = false;
    for await (const chunk of chunks) {
      hasUsage ||= "usage" in chunk;
      yield chunk;
    }
    if (!hasUsage) {
      yield usageUnknown(WHO);
      yield { usage: NOTHING };
    }
    call.answered();
  } catch (thrown) {
    throw call.failed(thrown);
  } finally {
    call.left();
  }
}

async function* streamed(answer: Answer, clock: Clock): AsyncGenerator<Chunk, void> {
  let isOver = false;
  try {
    for await (const events of eventsOf(answer, STREAM_BYTES)) {
      const end = events.find(isEnd);
      yield* readEvents(end ? events.slice(0, events.indexOf(end)) : events);
      if (!end) continue;
      isOver = true;
      yield* readEnd(dataOf(end));
      return;
    }
  } finally {
    // A reply is over before its body: a short rest is read, so that the connection can be used again.
    if (isOver) void answer.rest(clock);
    else answer.discard();
  }
  throw new BackendError(`${WHO} ended its stream without \`done\``, { retryable: true });
}

/**
 * The pieces of events that were received together. Consecutive texts are one piece. An event without a piece is a sign of life; so is a text.
 * Throws at an invalid event, after the pieces before it.
 */
function* readEvents(events: readonly Sent[]): Generator<Chunk, void> {
  let texts: string[] = [];
  let failed: { error: unknown } | undefined;
  for (const event of events) {
    let chunk: Chunk = ALIVE;
    try {
      if (event !== "comment" && PIECES.has(event.name)) chunk = readPiece(dataOf(event));
    } catch (error) {
      failed = { error };
      break;
    }
    if ("text" in chunk) texts.push(chunk.text);
    if ("text" in chunk || ("alive" in chunk && texts.length > 0)) continue;
    if (texts.length > 0) yield { text: texts.join("") };
    texts = [];
    yield chunk;
  }
  if (texts.length > 0) yield { text: texts.join("") };
  if (failed) throw failed.error;
}

/** The failure in an answer that is not a reply. Its head is sufficient, so the wait for its body is shorter than for a reply. */
async function failureOf(want: Want, type: string, answer: Answer, clock: Clock): Promise<BackendError> {
  const { status } = answer;
  const text = await answer.rest(clock);
  if (want === "summary" && NO_SUMMARIES.has(status))
    return new BackendError(`${WHO} does not write summaries (it answered ${status})`);
  const { detail, retryable = isWorthAnotherTry(status) } = readFailure(type, text);
  const words = detail === undefined ? statusWords(status) : `answered ${status}: ${detail}`;
  return new BackendError(`${WHO} ${words}`, { retryable, ...answer.again(clock) });
}

const ALIVE: Chunk = { alive: true };
function isEnd(event: Sent): event is Exclude<Sent, "comment"> {
  return event !== "comment" && event.name === "done";
}
/** Events that are a piece of the reply; others are a sign of life. */
const PIECES = new Set(["", "message", "delta", "usage", "model", "error"]);
/** The statuses of a service that does not know the request for a summary. */
const NO_SUMMARIES = new Set([400, 404, 405, 415, 422, 501]);

function dataOf({ data }: { data: string }): unknown {
  const value = jsonOf(data);
  if (value === undefined) throw new BackendError(`${WHO} sent an event whose data is not JSON`);
  return value;
}

function mediaTypeOf(header: string | string[] | undefined): string {
  const [type = ""] = String(header ?? "").split(";");
  return type.trim().toLowerCase();
}

/** The pieces of a complete answer. Throws if it is not a reply. */
function readWhole(want: Want, status: number, type: string, text: string): Chunk[] {
  if (type === "text/plain" && want === "reply") return [{ text }];
  if (!isJson(type))
    throw noAnswer(want, type === "" ? `${status} and no type` : `the type ${cleanSentence(type, 80)}`);
  const document = jsonOf(text);
  if (!isObject(document)) throw new BackendError(`${WHO} answered with broken JSON`);
  if (document.error !== undefined) readPiece({ error: document.error });
  const words = document[want];
  if (typeof words !== "string") throw noAnswer(want, `JSON without the text \`${want}\``);
  return readEnd(document, [{ text: words }]);
}

/** The model and the usage at the end of an answer, after `chunks`. */
function readEnd(document: unknown, chunks: Chunk[] = []): Chunk[] {
  const { model, usage } = Object(document);
  if (model != null) chunks.push(readPiece({ model }));
  if (usage != null) chunks.push(readPiece({ usage }));
  return chunks;
}

function noAnswer(want: Want, what: string): BackendError {
  return new BackendError(
    want === "summary" ? `${WHO} does not write summaries (it answered with ${what})` : `${WHO} answered with ${what}`,
  );
}

/**
 * The failure in an answer with an error status, for callers. It is read only from problem+json, whose `detail` is meant for them. Any other body may
 * be the page of a proxy or the trace of a program.
 */
function readFailure(type: string, text: string | undefined): { detail?: string; retryable?: boolean } {
  if (type !== "application/problem+json" || text === undefined) return {};
  const { detail, title, retryable } = Object(jsonOf(text));
  const words = typeof detail === "string" ? detail : title;
  const sentence = typeof words === "string" ? cleanSentence(words) : "";
  return { ...(sentence !== "" && { detail: sentence }), ...(typeof retryable === "boolean" && { retryable }) };
}

function isJson(type: string): boolean {
  return type === "application/json" || type.endsWith("+json");
}
