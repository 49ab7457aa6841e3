import { serve } from "#cli/serve.ts";

// The gateway as its users start it, built as servers/unrecorded.ts is.

process.on("disconnect", () => process.exit());
await serve(process.argv.slice(2), process.env);
