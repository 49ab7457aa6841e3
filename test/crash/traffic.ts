import { appendFileSync } from "node:fs";
import type { Random } from "#test/harness/random.ts";
import { type Broken, breach } from "./breaches.ts";
import { createOrders, type Kind, type Order } from "./orders.ts";
import { type Answer, type Caller, NoAnswer, send, type Verdict, verdictOf } from "./requests.ts";

type TrafficOptions = {
  caller: Caller;
  random: Random;
  /** The prefix of all markers. */
  run: string;
  /** The addresses of the gateways, whether they run or not. */
  urls: readonly string[];
  lanes: number;
  /** The pause of each client after a request; by default none. */
  restMs?: number | undefined;
  kinds?: readonly Kind[] | undefined;
  /** Every 2xx is also written to this file. */
  file?: string | undefined;
};

export type Counts = Record<
  "acknowledged" | "repeated" | "refused" | "unknown" | "unavailable" | "unreachable",
  number
>;

const REPEATED_AT_ONCE = 0.25;
const REPEATED_LATER = 0.1;
const MISMATCHED = 0.02;
const AT_ONCE = 4;
const REST_MS = 20;
const KEPT_FOR_LATER = 2_000;
/**
 * After this number of attempts without an answer a client continues, and repeats the request later: its turn may belong to a dead gateway for a
 * while.
 */
const TRIES_AT_ONCE = 2;

/**
 * Clients at full speed, each with one request after another. A request with a key is repeated until it is answered; one without a key is sent once,
 * because a second execution would be a mistake.
 */
export function startTraffic(options: TrafficOptions) {
  const { caller, random, run, urls, lanes, restMs = 0, kinds, file } = options;
  const orders: Order[] = [];
  const later: Order[] = [];
  /** With a key, and sent at least once without an answer. */
  const unheard = new Set<Order>();
  const broken: Broken[] = [];
  const counts: Counts = { acknowledged: 0, repeated: 0, refused: 0, unknown: 0, unavailable: 0, unreachable: 0 };
  const nextOrder = createOrders(random, run);
  let isStopped = false;

  const rest = (ms = REST_MS) => new Promise((resolve) => setTimeout(resolve, ms));

  /** Sends it to one gateway, and if that is down, to the others, until one accepts it. Undefined if the traffic ends before. */
  const sendOnce = async (order: Order, change = "", always = false): Promise<Answer | NoAnswer | undefined> => {
    for (let tries = random.below(urls.length); always || !isStopped; tries++) {
      try {
        return await send(caller, urls[tries % urls.length] as string, order, change);
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
        if (error.sent) return error;
        counts.unreachable++;
        if (tries % urls.length === urls.length - 1) await rest();
      }
    }
    return undefined;
  };

  const write = (order: Order, verdict: Extract<Verdict, { is: "acknowledged" }>): void => {
    const { ack, replayed } = verdict;
    if (order.ackedAt === undefined) {
      order.ackedAt = performance.now();
      order.outcome = "acknowledged";
      counts.acknowledged++;
    } else counts.repeated++;
    if (replayed && order.key === undefined)
      broken.push(breach("one effect per key", "an order without a key was answered as a repeat", order.marker));
    order.acks.push(ack);
    if (file)
      appendFileSync(file, `${JSON.stringify({ marker: order.marker, kind: order.kind, key: order.key, ...ack })}\n`);
  };

  /** Sends it, and repeats it with a key a few times, until its result is known. */
  const settle = async (order: Order, always = false): Promise<void> => {
    for (let tries = 1; ; tries++) {
      const answer = await sendOnce(order, "", always);
      const verdict: Verdict | undefined =
        answer === undefined
          ? undefined
          : answer instanceof NoAnswer
            ? { is: "unknown", why: answer.message }
            : verdictOf(order, answer);
      if (verdict?.is === "acknowledged") return write(order, verdict);
      if (verdict?.is === "refused") {
        counts.refused++;
        if (order.outcome === "acknowledged")
          broken.push(breach("one effect per key", `a repeat was refused with ${verdict.why}`, order.marker));
        // An earlier attempt without an answer may still be on its way to the store.
        else order.outcome = unheard.has(order) ? "unknown" : "refused";
        return;
      }
      if (verdict && /^503|unavailable/.test(verdict.why)) counts.unavailable++;
      if (verdict === undefined) return;
      if (order.key === undefined) {
        counts.unknown++;
        return;
      }
      unheard.add(order);
      if (!always && tries === TRIES_AT_ONCE) return;
      await rest();
    }
  };

  const repeat = (order: Order, always = false) => settle(order, always);

  /** The same key with another body starts nothing. */
  const mismatch = async (order: Order): Promise<void> => {
    const answer = await sendOnce(order, " and more");
    if (answer === undefined || answer instanceof NoAnswer) return;
    const verdict = verdictOf(order, answer);
    if (verdict.is === "acknowledged")
      broken.push(breach("one effect per key", "a key was taken with another body", order.marker, verdict.ack.work));
  };

  const repeatAtOnce = async (order: Order): Promise<void> => {
    if (random.chance(MISMATCHED)) await mismatch(order);
    if (random.chance(REPEATED_AT_ONCE)) await Promise.all(Array.from({ length: AT_ONCE }, () => repeat(order)));
    else if (random.chance(REPEATED_LATER)) later.push(order);
  };

  const repeatOneOfLater = async (): Promise<void> => {
    const order = later.splice(random.below(later.length), 1)[0] as Order;
    await repeat(order);
    if (order.outcome === "unknown") later.push(order);
  };

  const lane = async (): Promise<void> => {
    while (!isStopped) {
      const order = nextOrder(performance.now(), kinds);
      orders.push(order);
      await settle(order);
      if (order.outcome === "refused") await rest();
      else if (restMs > 0) await rest(restMs);
      if (order.key === undefined || order.outcome === "refused") continue;
      if (order.outcome === "unknown") later.push(order);
      else await repeatAtOnce(order);
      if (later.length > KEPT_FOR_LATER || (later.length > 0 && random.chance(REPEATED_LATER)))
        await repeatOneOfLater();
    }
  };
  const running = Promise.all(Array.from({ length: lanes }, lane));

  return {
    orders,
    counts,
    broken,
    /** Starts nothing more; resolves when all started requests have a result. */
    async stop(): Promise<void> {
      isStopped = true;
      await running;
    },
    /** Repeats requests with a key: those with an unknown result, and some that were answered long ago. */
    async repeatLast(most: number): Promise<void> {
      const unsettled = orders.filter(({ key, outcome }) => key !== undefined && outcome === "unknown");
      const answered = orders.filter(({ key, outcome }) => key !== undefined && outcome === "acknowledged");
      const step = Math.max(1, Math.floor(answered.length / most));
      const asked = [...unsettled, ...answered.filter((_, n) => n % step === 0)];
      for (let n = 0; n < asked.length; n += lanes)
        await Promise.all(asked.slice(n, n + lanes).map((order) => repeat(order, true)));
    },
  };
}
