import { Agent } from "undici";
import { HEAD_BYTES, reachWithin } from "#kit/lookup.ts";

/**
 * Connections to an agent or a model, kept for the next turn. The address is the configuration's: no redirect is followed, no variable of
 * the environment sets a proxy, no cookie is kept. How long an answer may take is not decided here: every turn is watched.
 */
export const openAgent = (connectMs: number): Agent =>
  new Agent({
    connect: reachWithin(connectMs),
    maxHeaderSize: HEAD_BYTES,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
