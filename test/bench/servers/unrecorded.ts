import { serve } from "#cli/serve.ts";
import { DeliveryRing } from "#store/memory/delivery-ring.ts";
import { NO_SLOT } from "#store/memory/record-segments.ts";
import { HookExchange } from "#wire/hooks/hook-exchange.ts";

// The gateway without its flight recorder: nothing is noted, made or kept of a request. servers/no-delivery.ts is built in place of what
// makes a delivery.

const nothing = () => {};
const ring: Pick<DeliveryRing, "addOfTurn" | "addOfEvent" | "record" | "addStep"> = {
  addOfTurn: () => NO_SLOT,
  addOfEvent: () => NO_SLOT,
  record: nothing,
  addStep: nothing,
};
Object.assign(DeliveryRing.prototype, ring);
HookExchange.prototype.note = nothing;

process.on("disconnect", () => process.exit());
await serve(process.argv.slice(2), process.env);
