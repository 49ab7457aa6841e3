import { writeFileSync } from "node:fs";
import { loadConfig } from "#config/load.ts";
import { BUILT, startGateway } from "#gateway/gateway.ts";
import { createLogger } from "#observe/logger.ts";
import { telemetryFiles } from "./telemetry/files.ts";

// Writes the dashboard and the alerts from the metrics of a gateway that is started for this.
const loaded = await loadConfig({ env: {}, port: 0, built: BUILT });
await using gateway = await startGateway({ loaded, logger: createLogger({ level: "error", format: "json" }) });
for (const [file, text] of Object.entries(telemetryFiles(gateway.metrics))) writeFileSync(file, text);
