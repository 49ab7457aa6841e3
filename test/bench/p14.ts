import { messageCall, rpcCall } from "./calls.ts";
import { type Figure, unmeasured } from "./figures.ts";
import { whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import { BEHIND_PROXY, compareRefusals, DAY_MS, type Refusals, WRONG_TOKEN } from "./refusals.ts";
import { TURNS } from "./turns.ts";

// What is announced as larger is refused by that, whatever the limit is: a low one keeps the transfer of the body out of the figure.
const BODY_LIMIT = 4 * 1024;
const GATEWAY = { ...BEHIND_PROXY, limits: { rpcBody: BODY_LIMIT } };
const ACCEPTED = messageCall();

const RPC: Refusals = {
  surface: "rpc",
  accepted: ACCEPTED,
  work: TURNS,
  gateway: GATEWAY,
  refusals: [
    {
      figure: "401, /rpc with a wrong token",
      call: { ...ACCEPTED, headers: { ...ACCEPTED.headers, ...WRONG_TOKEN } },
      error: "unauthenticated",
      note: "each a token of its own, and 20 from each address, as a trusted proxy reports it: below the guessing threshold",
    },
    {
      figure: "404, a path below /rpc",
      call: { ...ACCEPTED, path: "/rpc/nothing" },
      error: "not-found",
      note: "with the same body",
    },
    {
      figure: "-32601, a method that there is not",
      call: rpcCall("agent.sendMassage", JSON.parse(ACCEPTED.body).params),
      error: "method-not-found",
      note: "HTTP 200",
    },
    {
      figure: "413, a body that is too large",
      call: { ...ACCEPTED, body: ACCEPTED.body.padEnd(2 * BODY_LIMIT) },
      error: "too-large",
      note: "8 KiB with a limit of 4; ends its connection, so beside accepted ones with a connection each",
      endsConnection: true,
    },
    {
      figure: "-32004, past gateway.rpc.rateLimit",
      call: ACCEPTED,
      error: "rate-limited",
      note: "429's code, in HTTP 200",
      gateway: { ...GATEWAY, rpc: { rateLimit: { maxRequests: 1, windowMs: DAY_MS } } },
    },
  ],
};

/** P14: calls of RPC that are refused, beside P1's messages that are accepted. */
export const measureRefusals = async (options: BenchOptions): Promise<Figure[]> => {
  const why = whyNoLoad();
  if (why) return RPC.refusals.map(({ figure }) => unmeasured("P14", figure, why));
  return await compareRefusals(RPC, options);
};
