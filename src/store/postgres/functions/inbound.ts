import { ANNOUNCEMENT_FUNCTIONS } from "./announcements.ts";
import { KEY_FUNCTIONS } from "./api-keys.ts";
import { BEAT_FUNCTIONS } from "./beats.ts";
import { COUNT_FUNCTIONS } from "./counts.ts";
import { DELIVERY_FUNCTIONS } from "./deliveries.ts";
import { EVENT_BATCH_FUNCTIONS } from "./event-batches.ts";
import { EVENT_FUNCTIONS } from "./events.ts";
import { GATEWAY_FUNCTIONS } from "./gateway-stream.ts";
import { IDEMPOTENCY_FUNCTIONS } from "./idempotency-keys.ts";
import { INBOUND_SWEEP_FUNCTIONS } from "./inbound-sweep.ts";
import { SHARED_FUNCTIONS } from "./shared.ts";
import { USAGE_FUNCTIONS } from "./usage.ts";

/** All that is done with what comes in, in the order in which PostgreSQL can know it. */
export const INBOUND_FUNCTIONS = [
  COUNT_FUNCTIONS,
  IDEMPOTENCY_FUNCTIONS,
  GATEWAY_FUNCTIONS,
  DELIVERY_FUNCTIONS,
  BEAT_FUNCTIONS,
  EVENT_BATCH_FUNCTIONS,
  EVENT_FUNCTIONS,
  ANNOUNCEMENT_FUNCTIONS,
  USAGE_FUNCTIONS,
  KEY_FUNCTIONS,
  SHARED_FUNCTIONS,
  INBOUND_SWEEP_FUNCTIONS,
].join("\n");
