import { newId } from "#kit/ids.ts";
import type { Backend, BackendTurn, Chunk } from "../backend.ts";
import { createBreaker } from "../breaker.ts";
import { Client } from "../outbound/client.ts";
import { summaryOf } from "../summary.ts";
import { summaryDocument, turnDocument } from "../turn-document.ts";
import { type Asked, Asking, type Service } from "./asking.ts";
import { createHeaders, type HttpSettings, targetOf } from "./request.ts";

export type { HttpSettings };

/** An agent that is a web service: each turn is a POST, as specs/agent-http.yaml has it. */
export const createHttpBackend = (settings: HttpSettings): Backend => {
  const { clock } = settings;
  const client = new Client(settings.connectMs, clock);
  const service: Service = {
    client,
    target: targetOf(settings.url),
    headers: createHeaders(settings),
    breaker: createBreaker(clock),
    clock,
  };
  const ask = (asked: Asked) => new Asking(service, asked).chunks;
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
    restMs: () => service.breaker.restMs(),
    close: () => client.close(),
  };
};
