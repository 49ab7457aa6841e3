import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { QUIET } from "../redocly.ts";
import { bodyOf, configurationIn, readWorkflows, WORKFLOWS } from "./document.ts";
import { startWorkflowGateway } from "./gateway.ts";
import { type Recording, recordingOf } from "./recording.ts";

/**
 * Runs the workflows with `redocly respect` on a gateway that is started for them. Returns the recording of their calls; undefined if a step failed.
 * Nothing leaves this machine.
 */
export async function runWorkflows(): Promise<Recording | undefined> {
  const document = readWorkflows();
  await using gateway = await startWorkflowGateway(configurationIn(document));
  const { REST_API_KEY, CONSOLE_TOKEN, WEBHOOK_TOKEN, GITHUB_SECRET } = gateway.secrets;
  const hmac = createHmac("sha256", GITHUB_SECRET).update(bodyOf(document, "receive-push"));
  const inputs = {
    rest_api_key: REST_API_KEY,
    console_token: CONSOLE_TOKEN,
    webhook_token: WEBHOOK_TOKEN,
    signature: `sha256=${hmac.digest("hex")}`,
  };
  const log = join(gateway.folder, "respect.json");
  const child = spawn(
    "node_modules/.bin/redocly",
    // The log is in the gateway's folder, which is deleted. The terminal gets no secret.
    ["respect", WORKFLOWS, "--server", `gateway=${gateway.url}`, "--json-output", log, "--no-secrets-masking"],
    { stdio: "inherit", env: { ...QUIET, REDOCLY_CLI_RESPECT_INPUT: JSON.stringify(inputs) } },
  );
  const [status] = await once(child, "close");
  return status === 0 ? recordingOf(readFileSync(log, "utf8"), inputs) : undefined;
}
