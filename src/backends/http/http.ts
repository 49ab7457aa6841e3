import type { BackendError } from "#core/errors.ts";
import { newId } from "#core/ids.ts";
import type { StopSignal } from "#core/stop-signal.ts";
import type { Backend, BackendTurn, Chunk, Used } from "../backend.ts";
import { createBreaker, keptBack, verdictOf } from "../breaker.ts";
import { ChunkQueue } from "../outbound/chunk-queue.ts";
import { Client } from "../outbound/client.ts";
import { connectionError } from "../outbound/words.ts";
import { summaryOf } from "../summary.ts";
import { summaryDocument, type TurnDocument, turnDocument } from "../turn-document.ts";
import { untold } from "../untold.ts";
import { Answer } from "./answer.ts";
import { type Want, WHO } from "./documents.ts";
import { createHeaders, type HttpSettings, targetOf } from "./request.ts";

export type { HttpSettings };

const ACCEPT = { reply: "text/event-stream, application/json, text/plain;q=0.5", summary: "application/json" } as const;
const NOTHING: Used = { input: 0, output: 0 };

type Asked = { want: Want; id: string; document: () => TurnDocument | Promise<TurnDocument>; signal: StopSignal };

/** An agent that is a web service: each turn is a POST, as specs/agent-http.yaml has it. */
export const createHttpBackend = (settings: HttpSettings): Backend => {
  const { clock } = settings;
  const breaker = createBreaker(clock);
  const client = new Client(settings.connectMs, clock);
  const target = targetOf(settings.url);
  const headers = createHeaders(settings);

  /** Sends the request with the first chunk that is asked for. */
  const ask = ({ want, id, document, signal }: Asked): ChunkQueue => {
    let used: Used | undefined;
    const over = (error?: unknown) => {
      signal.removeEventListener("abort", stop);
      breaker.tell(error === undefined ? "answered" : verdictOf(error, signal), (error as BackendError)?.retryAfterMs);
      if (error === undefined) {
        if (!used) queue.push(untold(WHO));
        queue.push({ usage: used ?? NOTHING });
        queue.end();
      } else queue.fail(error);
    };
    const answer = new Answer(want, clock, {
      chunk(chunk) {
        if ("usage" in chunk) used = chunk.usage;
        queue.push(chunk);
      },
      over: (error: BackendError | undefined) => over(error),
    });
    const stop = () => {
      answer.leave();
      over(signal.reason);
    };
    const post = (told: TurnDocument): void => {
      if (queue.isOver) return;
      const body = JSON.stringify(told);
      const own = headers.of(id, ACCEPT[want], body, told.hops);
      const { origin, path } = target;
      client.dispatch({ origin, path, always: headers.always(), headers: own, body }, answer);
    };
    const send = (): void => {
      const failed = (error: unknown) => over(connectionError(WHO, error));
      try {
        const told = document();
        if (told instanceof Promise) told.then(post).catch(failed);
        else post(told);
      } catch (error) {
        failed(error);
      }
    };
    const queue = new ChunkQueue({
      begin() {
        const waitMs = signal.aborted ? 0 : breaker.wait();
        if (signal.aborted) queue.fail(signal.reason);
        else if (waitMs > 0) queue.fail(keptBack(WHO, waitMs));
        else {
          signal.addEventListener("abort", stop, { once: true });
          send();
        }
      },
      full: (isFull) => answer.pause(isFull),
      leave() {
        signal.removeEventListener("abort", stop);
        breaker.tell("unknown");
        answer.leave();
      },
    });
    return queue;
  };

  return {
    kind: "http",
    asksOutside: true,
    models: settings.models,
    run: (turn: BackendTurn, signal): AsyncIterable<Chunk> =>
      ask({ want: "reply", id: turn.turnId, document: () => turnDocument(turn, settings), signal }),
    async summarise(messages, signal, tell) {
      const id = newId("req", clock.now());
      const document = () => summaryDocument(settings.agent, messages);
      return await summaryOf(ask({ want: "summary", id, document, signal }), tell);
    },
    close: () => client.close(),
  };
};
