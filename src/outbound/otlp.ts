import type { Clock } from "#kit/clock.ts";
import type { Span } from "#kit/span.ts";
import { ask, openAgent, targetOf } from "./ask.ts";

/** The reason that spans are not sent: no room in the queue, or a collector that does not take them. */
type DropReason = "queue" | "collector";

/** Takes spans and sends them later. `add` never waits and never throws. */
export type SpanSink = {
  add(spans: readonly Span[]): void;
  /** Sends what is left, for at most the time that a request may take. */
  close(): Promise<void>;
};

type OtlpOptions = {
  /** The whole address, which ends in `/v1/traces` with most collectors. */
  url: string;
  headers: Readonly<Record<string, string>>;
  /** The attributes of the process. */
  resource: Readonly<Record<string, string>>;
  version: string;
  timeoutMs: number;
  queue: number;
  batch: number;
  delayMs: number;
  clock: Clock;
  /** JSON without the secrets of the configuration. */
  hideInJson: (json: string) => string;
  onDrop: (reason: DropReason, count: number, detail: string) => void;
};

const CONNECT_MS = 5_000;
/** The answers after which OTLP allows another try. */
const AGAIN = new Set([429, 502, 503, 504]);
const TRIES = 3;
const FIRST_WAIT_MS = 1_000;
const KINDS = { internal: 1, server: 2, client: 3 } as const;
const STATUS_ERROR = 2;

/** Sends spans to a collector as OTLP/HTTP with JSON: in batches, one at a time, from a queue that is bounded. */
export function createOtlpSink(options: OtlpOptions): SpanSink {
  const { clock, onDrop } = options;
  const agent = openAgent(CONNECT_MS);
  const closing = new AbortController();
  const queue: Span[] = [];
  let sending: Promise<void> | undefined;
  let stopTimer: (() => void) | undefined;

  const tryOnce = async (
    body: Buffer,
  ): Promise<{ isDone: boolean; mayRetry: boolean; waitMs?: number; words: string }> => {
    const headers = { "content-type": "application/json", "user-agent": "agent-gateway", ...options.headers };
    const request = { ...targetOf(options.url), method: "POST", headers, body } as const;
    try {
      const answer = await ask(agent, "the collector", request, null, { clock, ms: options.timeoutMs });
      await answer.rest(clock);
      const isDone = answer.status >= 200 && answer.status < 300;
      const { retryAfterMs: waitMs } = answer.again(clock);
      const words = `the collector answered ${answer.status}`;
      return { isDone, mayRetry: AGAIN.has(answer.status), words, ...(waitMs !== undefined && { waitMs }) };
    } catch (error) {
      return { isDone: false, mayRetry: true, words: (error as Error).message };
    }
  };

  const send = async (spans: readonly Span[]): Promise<void> => {
    const body = Buffer.from(options.hideInJson(JSON.stringify(requestOf(spans, options))));
    for (let attempt = 1; ; attempt++) {
      const { isDone, mayRetry, waitMs, words } = await tryOnce(body);
      if (isDone) return;
      if (!mayRetry || attempt >= TRIES || closing.signal.aborted) {
        onDrop("collector", spans.length, words);
        return;
      }
      await pause(clock, Math.min(waitMs ?? FIRST_WAIT_MS * 2 ** (attempt - 1), options.timeoutMs), closing.signal);
    }
  };

  const sendAll = async (): Promise<void> => {
    stopTimer?.();
    stopTimer = undefined;
    while (queue.length > 0) await send(queue.splice(0, options.batch));
    sending = undefined;
  };
  const begin = (): void => {
    sending ??= sendAll();
  };

  return {
    add(spans) {
      const room = Math.max(0, options.queue - queue.length);
      if (closing.signal.aborted || room < spans.length) {
        onDrop("queue", spans.length, "the queue is full");
        return;
      }
      queue.push(...spans);
      if (queue.length >= options.batch) begin();
      else stopTimer ??= clock.after(options.delayMs, begin);
    },
    async close() {
      closing.abort();
      begin();
      let stop = (): void => {};
      const late = new Promise<void>((resolve) => {
        stop = clock.after(options.timeoutMs, resolve);
      });
      await Promise.race([sending, late]);
      stop();
      if (queue.length > 0) onDrop("queue", queue.splice(0).length, "the gateway stopped");
      await agent.destroy();
    },
  };
}

/** Waits so long, or until the signal aborts. */
function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stop();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const stop = clock.after(ms, done);
    signal.addEventListener("abort", done, { once: true });
  });
}

/** An `ExportTraceServiceRequest`, in the JSON form of OTLP. */
function requestOf(spans: readonly Span[], { resource, version }: OtlpOptions): object {
  return {
    resourceSpans: [
      {
        resource: { attributes: attributesOf(resource) },
        scopeSpans: [{ scope: { name: "agent-gateway", version }, spans: spans.map(spanOf) }],
      },
    ],
  };
}

function spanOf({ traceId, spanId, parentId, name, kind, from, to, attributes, failure }: Span): object {
  return {
    traceId,
    spanId,
    ...(parentId !== undefined && { parentSpanId: parentId }),
    name,
    kind: KINDS[kind],
    startTimeUnixNano: nanoseconds(from),
    endTimeUnixNano: nanoseconds(Math.max(from, to)),
    attributes: attributesOf(attributes),
    status: failure === undefined ? {} : { code: STATUS_ERROR, message: failure },
  };
}

/** As text: a number of nanoseconds has more digits than a number holds. */
function nanoseconds(ms: number): string {
  return `${Math.round(ms)}000000`;
}

function attributesOf(attributes: Span["attributes"]): object[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: typedValue(value) }],
  );
}

function typedValue(value: string | number | boolean): object {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
