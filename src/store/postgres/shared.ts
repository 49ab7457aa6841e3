import type { RateCount, ReplyText, SharedStore } from "#store/store.ts";
import type { Frame } from "./frame.ts";
import { keepText, readText } from "./texts.ts";

type Limit = { maxRequests: number; windowMs: number };
type Waiting = Limit & { settle: ((count: RateCount) => void)[]; fail: ((error: unknown) => void)[] };
type Counted = { used: number; waits: number | null };

type TextRow = { session_id: string; seq: number; place: number; turn_id: string; message_id: string; text: string };

export const sharedStore = (frame: Frame): SharedStore => ({
  countRequest: rateCounter(frame),

  readRequests: async (keys, { maxRequests, windowMs }) => {
    const args = [keys.map(keepText), windowMs, frame.time()];
    const { uses } = await frame.call<{ uses: { used: number; whole_in: number | null }[] }>("read_requests", args);
    return uses.map(({ used, whole_in }) => ({
      left: Math.max(0, maxRequests - used),
      wholeInMs: whole_in === null ? undefined : Math.ceil(whole_in),
    }));
  },

  gateways: () => frame.gateways,

  haveAgents: async (agents) => {
    await frame.call("have_agents", [frame.node, agents, frame.time()]);
  },
  goneAgents: (agents, withinMs) => frame.call<string[]>("gone_agents", [agents, withinMs, frame.time()]),

  askTexts: async (sessionIds) => frame.notify("textsAsked", sessionIds),

  putTexts: async (pieces) => {
    const rows = pieces.map(({ sessionId, seq, offset, turnId, messageId, text }) => {
      const of = { session: keepText(sessionId), seq, place: offset, length: text.length };
      return { ...of, turn: turnId, message: messageId, text: keepText(text) };
    });
    await frame.call("put_texts", [JSON.stringify(rows)]);
    frame.notify("textsPut", [...new Set(pieces.map(({ sessionId }) => sessionId))]);
  },

  readTexts: async (places) => {
    const wanted = new Map(places.map((place) => [place.sessionId, place]));
    const rows = await frame.call<TextRow[]>("read_texts", [
      JSON.stringify(
        places.map(({ sessionId, seq, offset }) => ({ session: keepText(sessionId), seq, place: offset })),
      ),
    ]);
    return rows.map((row): ReplyText => {
      const sessionId = readText(row.session_id);
      const place = wanted.get(sessionId);
      const text = readText(row.text);
      const known = place?.seq === row.seq ? Math.max(place.offset - row.place, 0) : 0;
      const of = { sessionId, seq: row.seq, turnId: row.turn_id, messageId: row.message_id };
      return { ...of, offset: row.place + known, text: text.slice(known) };
    });
  },

  dropTexts: async (replies) => {
    const rows = replies.map(({ sessionId, seq }) => ({ session: keepText(sessionId), seq }));
    await frame.call("drop_texts", [JSON.stringify(rows)]);
  },
});

/** Requests that come while a call is on its way are counted together by the next one. */
const rateCounter = (frame: Frame): SharedStore["countRequest"] => {
  let waiting = new Map<string, Waiting>();
  let isBusy = false;

  const countAll = async (): Promise<void> => {
    while (waiting.size > 0) {
      const counted = [...waiting];
      waiting = new Map();
      try {
        const requests = counted.map(([key, { maxRequests, windowMs, settle }]) => {
          return { key: keepText(key), most: maxRequests, window_ms: windowMs, times: settle.length };
        });
        const args = [JSON.stringify(requests), frame.time()];
        const { results } = await frame.call<{ results: Counted[] }>("count_requests", args);
        for (const [n, [, of]] of counted.entries()) answer(of, results[n] as Counted);
      } catch (error) {
        for (const [, { fail }] of counted) for (const refuse of fail) refuse(error);
      }
    }
    isBusy = false;
  };

  return (key, { maxRequests, windowMs }) =>
    new Promise((resolve, reject) => {
      const of = waiting.get(key) ?? { maxRequests, windowMs, settle: [], fail: [] };
      waiting.set(key, of);
      of.settle.push(resolve);
      of.fail.push(reject);
      if (isBusy) return;
      isBusy = true;
      // All that come in this turn of the loop go together.
      setImmediate(() => void countAll());
    });
};

const answer = ({ maxRequests, windowMs, settle }: Waiting, { used, waits }: Counted): void => {
  for (const [n, resolve] of settle.entries()) {
    const left = maxRequests - used - n - 1;
    resolve(left >= 0 ? { left } : { waitMs: Math.ceil(waits ?? windowMs) });
  }
};
