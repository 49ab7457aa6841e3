import { describe, test } from "vitest";
import { forms, runForm } from "./python.ts";
import { type Call, play, scenes } from "./scenes.ts";

/** A program that makes the call, and prints its outcome and the items that it read. */
function programFor({ call, path = [], fields = {}, read }: Call): string {
  const given = [
    ...path.map((part) => JSON.stringify(part)),
    ...Object.entries(fields).map(([name, value]) => `${name}=${JSON.stringify(value)}`),
  ];
  const made = `gateway.${call}(${given.join(", ")})`;
  const source = read === "text" ? `${made}.text()` : made;
  const item = read === "events" ? 'one.event + " " + one.id' : "one";
  const played = read ? `read(${source}, lambda one: ${item})` : made;
  return `items.clear()\nshow({**await failing(lambda: ${played}), "read": items})`;
}

const READ = `
items = []
async def read(source, shown):
    async for one in source:
        items.append(shown(one))
`;

describe.concurrent.each(forms)("%s for Python %s", (form, _, python) => {
  test.each(scenes)("$title", async (scene) => {
    await play(scene, (url, calls, retries) => {
      const options = retries === undefined ? "" : `, max_retries=${retries}`;
      const client = `gateway = AsyncGateway(url="${url}", key="secret", rpc_token="rpc"${options})\n`;
      return runForm(form, python, `${client}${READ}${calls.map(programFor).join("\n")}\nawait gateway.close()`);
    });
  });
});
