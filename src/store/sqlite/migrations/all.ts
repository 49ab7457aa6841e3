import { first } from "./0001-first.ts";
import { inbound } from "./0001-inbound.ts";
import { usage } from "./0002-usage.ts";
import { pauses } from "./0003-pauses.ts";

/** In order, and never changed once they were released: the first makes version 1 of an empty file. */
export const migrations: readonly string[] = [first + inbound, usage, pauses];
