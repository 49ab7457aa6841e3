import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { QUIET } from "../redocly.ts";
import { bodyOf, configurationIn, readWorkflows, WORKFLOWS } from "./document.ts";
import { startWorkflowGateway } from "./gateway.ts";

/**
 * Runs the workflows with `redocly respect` on a gateway that is started for them. Returns the status of its process. Nothing leaves this machine. With
 * `har`, the exchanges are written to that file.
 */
export async function runWorkflows({ har }: { har?: string } = {}): Promise<number> {
  const document = readWorkflows();
  await using gateway = await startWorkflowGateway(configurationIn(document));
  const { REST_API_KEY, CONSOLE_TOKEN, WEBHOOK_TOKEN, GITHUB_SECRET } = gateway.secrets;
  const hmac = createHmac("sha256", GITHUB_SECRET).update(bodyOf(document, "receive-push"));
  const inputs = {
    key: REST_API_KEY,
    console_token: CONSOLE_TOKEN,
    webhook_token: WEBHOOK_TOKEN,
    signature: `sha256=${hmac.digest("hex")}`,
  };
  const child = spawn(
    "node_modules/.bin/redocly",
    ["respect", WORKFLOWS, "--server", `gateway=${gateway.url}`, ...(har === undefined ? [] : ["--har-output", har])],
    { stdio: "inherit", env: { ...QUIET, REDOCLY_CLI_RESPECT_INPUT: JSON.stringify(inputs) } },
  );
  const [status] = await once(child, "close");
  return status ?? 1;
}
