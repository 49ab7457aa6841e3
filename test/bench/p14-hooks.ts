import { wakeCall } from "./calls.ts";
import { EVENTS } from "./events.ts";
import { type Figure, unmeasured } from "./figures.ts";
import { whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import { BEATING } from "./p2.ts";
import { BEHIND_PROXY, compareRefusals, DAY_MS, type Refusals, WRONG_TOKEN } from "./refusals.ts";

const BODY_LIMIT = 4 * 1024;
const GATEWAY = { ...BEATING, ...BEHIND_PROXY, limits: { ...BEATING.limits, webhookBody: BODY_LIMIT } };
const ACCEPTED = wakeCall();

const HOOKS: Refusals = {
  surface: "hooks",
  accepted: ACCEPTED,
  work: EVENTS,
  gateway: GATEWAY,
  refusals: [
    {
      figure: "401, /hooks/wake with a wrong token",
      call: { ...ACCEPTED, headers: { ...ACCEPTED.headers, ...WRONG_TOKEN } },
      error: "unauthenticated",
      note: "each a token of its own, and 20 from each address, as a trusted proxy reports it: below the guessing threshold",
    },
    {
      figure: "404, a path below /hooks",
      call: { ...ACCEPTED, path: "/hooks/wake/nothing" },
      error: "not-found",
      note: "with the same body",
    },
    {
      figure: "404, a mapping that there is not",
      call: { ...ACCEPTED, path: "/hooks/nothing" },
      error: "mapping-not-found",
      note: "with the good token, as strangers are not told",
    },
    {
      figure: "413, a webhook that is too large",
      call: { ...ACCEPTED, body: ACCEPTED.body.padEnd(2 * BODY_LIMIT) },
      error: "too-large",
      note: "8 KiB with a limit of 4; ends its connection, so beside accepted ones with a connection each",
      endsConnection: true,
    },
    {
      figure: "429, past webhooks.rateLimit",
      call: ACCEPTED,
      error: "rate-limited",
      note: "with the good token",
      gateway: { ...GATEWAY, webhooks: { rateLimit: { maxRequests: 1, windowMs: DAY_MS } } },
    },
    {
      figure: "503, past limits.events",
      call: ACCEPTED,
      error: "gateway-busy",
      note: "with the good token; the event that fills the queue is for a beat in half an hour",
      gateway: { ...GATEWAY, agent: {}, limits: { ...GATEWAY.limits, events: 1 } },
    },
  ],
};

/** P14: webhooks that are refused, beside P2's events that are accepted. */
export const measureHookRefusals = async (options: BenchOptions): Promise<Figure[]> => {
  const why = whyNoLoad();
  if (why) return HOOKS.refusals.map(({ figure }) => unmeasured("P14", figure, why));
  return await compareRefusals(HOOKS, options);
};
