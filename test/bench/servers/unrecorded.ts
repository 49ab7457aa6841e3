import { serve } from "#cli/serve.ts";
import { HookExchange } from "#wire/hooks/hook-exchange.ts";

// The gateway without its flight recorder: nothing is noted, made or kept of a request. servers/no-delivery.ts is built in place of what
// makes a delivery, and servers/no-recorder.ts in place of what keeps it.

HookExchange.prototype.note = () => {};

process.on("disconnect", () => process.exit());
await serve(process.argv.slice(2), process.env);
