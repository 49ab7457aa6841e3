import { expect, test } from "vitest";
import { operationsAt, plain, repliesOf } from "#test/harness/examples.ts";
import { startProcess } from "#test/harness/process.ts";
import { createRest } from "#test/harness/rest.ts";
import { agentWith, key } from "./configs.ts";

const withAdmin = agentWith({});
const ADMIN = "an-admin-key-for-operators";
const config = {
  ...withAdmin,
  gateway: {
    ...withAdmin.gateway,
    rest: { auth: { keys: [{ name: "ops", key: ADMIN, scopes: ["admin" as const] }] } },
  },
};

test("config.get tells the origin of each value, and the reload that was refused", async () => {
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

test("config.get takes a key with the scope admin", async () => {
  await using gateway = await startProcess({ config: withAdmin });
  expect((await createRest(gateway.url, key).call("config.get")).error).toBe("forbidden");
});

type Shown = { file: string | null; values: { path: string }[]; last_reload: object | null };
const examples = new Map(repliesOf(operationsAt("/api/v1/config")).map(({ name, value }) => [name, value as Shown]));

/** An example has some of the values of its gateway; the rest of it is whole. */
const expectExample = (name: string, got: Shown): void => {
  const { values, ...rest } = examples.get(name) as Shown;
  expect(plain({ ...got, values: undefined })).toEqual(plain(rest));
  for (const value of values) expect(got.values.find(({ path }) => path === value.path)).toEqual(value);
  const order = values.map(({ path }) => got.values.findIndex((one) => one.path === path));
  expect(order).toEqual(order.toSorted((a, b) => a - b));
};

/** The file of the example whose change was refused; its last line is changed. */
const fileWith = (token: string) => `{
  gateway: {
    rest: { auth: { keys: [{ name: "ci", key: "\${REST_API_KEY}", scopes: ["admin"] }] } },
  },
  agents: { main: { backend: "echo" } },
  webhooks: {
    ${token}: "a-token-of-the-webhooks",
  },
}
`;

test("the example of a refused change is what a gateway answers", async () => {
  await using gateway = await startProcess({
    config: fileWith("token"),
    env: { REST_API_KEY: ADMIN, GATEWAY_PORT: "0" },
    command: (usual) => usual.filter((word, n) => word !== "--port" && usual[n - 1] !== "--port"),
  });
  gateway.configure(fileWith("tokn"));
  await gateway.logged("config.refused");
  const { text } = await createRest(gateway.url, ADMIN).call("config.get");
  // A test takes any port that is free.
  const got = JSON.parse(text, (_, value) => (value?.path === "gateway.port" ? { ...value, value: 8080 } : value));
  expectExample("refused", got as Shown);
});

test("the example of a start without a configuration is what a gateway answers", async () => {
  await using gateway = await startProcess();
  const { CONSOLE_TOKEN } = await gateway.until(() => (gateway.secrets.CONSOLE_TOKEN ? gateway.secrets : undefined));
  expectExample("trial", (await createRest(gateway.url, CONSOLE_TOKEN).call("config.get")).json as unknown as Shown);
});

test("every example is tried", () => {
  expect([...examples.keys()]).toEqual(["refused", "trial"]);
});
