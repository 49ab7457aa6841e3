import { Agent } from "undici";
import { createLookup } from "#core/lookup.ts";

const HEAD_BYTES = 32 * 1024;

/**
 * Connections to an agent or a model, kept for the next turn. The address is the configuration's: no redirect is followed, no variable of
 * the environment sets a proxy, no cookie is kept. How long an answer may take is not decided here: every turn is watched.
 */
export const openAgent = (connectMs: number): Agent =>
  new Agent({
    connect: { timeout: connectMs, lookup: createLookup(), rejectUnauthorized: true, minVersion: "TLSv1.2" },
    maxHeaderSize: HEAD_BYTES,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
