import { setTimeout as sleep } from "node:timers/promises";
import type { SendMessageRequest } from "@a2a-js/sdk";
import { type Client, ClientFactory, JsonRpcTransportFactory, RestTransportFactory } from "@a2a-js/sdk/client";
import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import { HOPS_HEADER } from "#kit/hops.ts";
import type { StopSignal } from "#kit/stop-signal.ts";
import { credentialsOf, openAgent } from "#outbound/ask.ts";
import type { Backend, BackendTurn, Chunk } from "../backend.ts";
import { Breaker } from "../breaker.ts";
import { digestOf } from "../summary.ts";
import { NOTHING, usageUnknown } from "../token-counts.ts";
import { cardAddress, createCards, WHO } from "./card.ts";
import { createFetch, failureOf } from "./fetch.ts";
import { contextOf, messageOf } from "./message.ts";
import { Reply } from "./reply.ts";

export type A2aSettings = {
  url: string;
  headers: Readonly<Record<string, string>>;
  connectMs: number;
  clock: Clock;
};

/** The pause between two requests for the state of a task that is not done yet. */
const POLL_MS = 1_000;
/** The time for which a stream may stay open after its reply is over. */
const REST_MS = 1_000;
/** The time limit for the request that cancels a task. */
const CANCEL_MS = 3_000;
/** Questions of agents that wait for an answer. The answer to a forgotten question starts a new task in the same context. */
const QUESTIONS = 10_000;

/** An A2A 1.0 agent. It stores the conversations itself: each session has a context there. */
export function createA2aBackend(settings: A2aSettings): Backend {
  const { url, headers, connectMs, clock } = settings;
  const agent = openAgent(connectMs);
  const address = cardAddress(url);
  const sent = { ...credentialsOf(url), ...headers };
  const fetchImpl = createFetch(agent, { headers: sent, clock, origin: address.origin });
  const cards = createCards(address, fetchImpl, clock);
  const breaker = new Breaker(clock);
  const transports = [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })];
  const factory = new ClientFactory({ transports });
  const questions = new Map<string, string>();

  const ask = (contextId: string, taskId: string): void => {
    questions.set(contextId, taskId);
    const [oldest] = questions.keys();
    if (questions.size > QUESTIONS && oldest !== undefined) questions.delete(oldest);
  };

  async function* guarded(turn: BackendTurn, outer: StopSignal): AsyncGenerator<Chunk, void> {
    const call = breaker.begin(WHO, outer);
    const inner = new AbortController();
    const stop = () => inner.abort(outer.reason);
    outer.addEventListener("abort", stop, { once: true });
    const reply = new Reply();
    try {
      yield* answer(turn, reply, inner.signal);
      call.answered();
    } catch (thrown) {
      if (outer.aborted) throw call.failed(thrown);
      cards.forget();
      throw call.failed(failureOf(thrown));
    } finally {
      call.left();
      outer.removeEventListener("abort", stop);
      const leave = () => inner.abort(new Error("nobody reads the reply"));
      // A reply ends before its stream. A short wait for the stream's end preserves the connection.
      if (reply.isOver) clock.after(REST_MS, leave);
      else leave();
    }
  }

  async function* answer(turn: BackendTurn, reply: Reply, signal: AbortSignal): AsyncGenerator<Chunk, void> {
    const card = await cards.read(signal);
    const client = await factory.createFromAgentCard(card);
    const contextId = contextOf(url, sent, turn);
    const request = requestOf(turn, contextId, questions.get(contextId));
    questions.delete(contextId);
    const serviceParameters = { [HOPS_HEADER]: String(turn.hops + 1) };
    try {
      for await (const event of client.sendMessageStream(request, { signal, serviceParameters })) {
        const text = reply.take(event);
        yield text === "" ? ALIVE : { text };
        if (reply.isOver) break;
      }
      while (!reply.isOver) {
        if (reply.taskId === undefined || card.capabilities?.streaming === true)
          throw new BackendError(`${WHO} ended its stream before its task`, { retryable: true });
        await sleep(POLL_MS, undefined, { signal });
        const text = reply.task(await client.getTask({ tenant: "", id: reply.taskId, historyLength: 0 }, { signal }));
        yield text === "" ? ALIVE : { text };
      }
      if (reply.isQuestion && reply.taskId !== undefined) ask(contextId, reply.taskId);
      if (!reply.used) yield usageUnknown(WHO);
      yield { usage: reply.used ?? NOTHING };
    } finally {
      if (!reply.isOver && reply.taskId !== undefined && signal.aborted) cancel(client, reply.taskId);
    }
  }

  return {
    kind: "a2a",
    asksOutside: true,
    models: [],
    run: guarded,
    // The agent reads its own record of the conversation, never this.
    summarise: async (messages) => digestOf(messages),
    restMs: () => breaker.restMs(),
    close: () => agent.close(),
  };
}

const ALIVE: Chunk = { alive: true };

function requestOf(turn: BackendTurn, contextId: string, taskId: string | undefined): SendMessageRequest {
  return {
    tenant: "",
    message: messageOf(turn, contextId, taskId),
    configuration: {
      acceptedOutputModes: ["text/plain", "text/markdown"],
      taskPushNotificationConfig: undefined,
      historyLength: 0,
      returnImmediately: false,
    },
    metadata: undefined,
  };
}

/** Best effort: the turn has ended already. */
function cancel(client: Client, id: string): void {
  client
    .cancelTask({ tenant: "", id, metadata: undefined }, { signal: AbortSignal.timeout(CANCEL_MS) })
    .catch(() => {});
}
