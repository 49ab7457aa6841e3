import { expect, test } from "vitest";
import { startProcess } from "#test/harness/process.ts";
import { createRest } from "#test/harness/rest.ts";
import { agentWith } from "./configs.ts";

const withAdmin = agentWith({});
const ADMIN = "an-admin-key-for-operators";
const config = {
  ...withAdmin,
  gateway: {
    ...withAdmin.gateway,
    rest: { auth: { keys: [{ name: "ops", key: ADMIN, scopes: ["admin" as const] }] } },
  },
};

test("config.get returns the origin of each value, and the refused reload", async () => {
  await using gateway = await startProcess({ config });
  const rest = createRest(gateway.url, ADMIN);
  const { status, json, text } = await rest.call("config.get");
  expect(status).toBe(200);
  expect(json).toMatchObject({ file: "gateway.json5", last_reload: null });
  const values = json.values as { path: string }[];
  const at = (path: string) => values.find((value) => value.path === path);
  expect(at("gateway.rest.auth.keys.0.name")).toMatchObject({ value: "ops", origin: "file", line: 7 });
  expect(at("gateway.rest.auth.keys.0.key")).toMatchObject({ value: "[hidden]", origin: "file" });
  expect(text).not.toContain(ADMIN);
  expect(text).not.toContain(gateway.folder);

  gateway.configure({ ...config, nonsense: 1 } as never);
  await gateway.logged("config.refused");
  const { last_reload } = (await rest.call("config.get")).json;
  const problem = { file: "gateway.json5", key: "nonsense" };
  expect(last_reload).toMatchObject({ cause: "file", reloaded: false, changed: [], problems: [problem] });
});
