import { expect, test } from "vitest";
import { shareGateway, startGateway } from "#test/harness/gateway.ts";
import { noteChecked } from "#test/harness/ledger.ts";

const gateway = await shareGateway();
const { key, consoleToken } = gateway;

/** No operation answers here, so the answer cannot be validated against the contract. */
async function ask(url: string, request: RequestInit = {}): Promise<Response> {
  const answer = await fetch(url, request);
  noteChecked(answer.headers.get("x-request-id") as string);
  return answer;
}

type RequestOptions = { url?: string; method?: string; token?: string };
async function detailOf(path: string, { url = gateway.url, method = "GET", token = "" }: RequestOptions = {}) {
  const headers: Record<string, string> = token === "" ? {} : { authorization: `Bearer ${token}` };
  const answer = await ask(url + path, { method, headers });
  expect(answer.status).toBe(404);
  const body = (await answer.json()) as { detail?: string; error?: { data: { detail: string } } };
  return body.detail ?? body.error?.data.detail;
}

test.each([
  ["/api/v1/chat/snd", "/api/v1/chat/send"],
  ["/api/v1/chat/send/", "/api/v1/chat/send"],
  ["/api/v1/turns/turn_1/cancle", "/api/v1/turns/turn_1/cancel"],
  ["/api/v2/chat/send", "/api/v1/chat/send"],
  ["/chat/send", "/api/v1/chat/send"],
  ["/hook/wake", "/hooks/wake"],
  ["/hooks/wake/", "/hooks/wake"],
  ["//healthz", "/healthz"],
  ["/metric", "/metrics"],
  ["/doc", "/docs"],
  ["/api/chat/send", "/api/v1/chat/send"],
  ["/rpc/", "/rpc"],
])("at %s nothing is found, and %s is suggested", async (path, meant) => {
  const token = path.startsWith("/api/v1") ? key : "";
  expect(await detailOf(path, { token })).toBe(`There is nothing at ${path}. Did you mean ${meant}?`);
});

test.each(["/api/v1/nope", "/api/v1/note", "/api/v1/tools", "/api/v1/chat", "/wake", "/live"])(
  "at %s nothing is found, and nothing is suggested",
  async (path) => {
    const token = path.startsWith("/api/v1") ? key : "";
    expect(await detailOf(path, { token })).toBe(`There is nothing at ${path}. GET / lists what there is.`);
  },
);

test("only the path is named if nothing is similar to it, and a long path is cut", async () => {
  expect(await detailOf("/wp-admin/setup.php?key=1")).toBe(
    "There is nothing at /wp-admin/setup.php. GET / lists what there is.",
  );
  const long = `/${"x".repeat(500)}`;
  expect(await detailOf(long)).toBe(`There is nothing at ${long.slice(0, 200)}. GET / lists what there is.`);
});

test("an unauthenticated caller gets no paths below a surface that requires tokens", async () => {
  expect((await ask(`${gateway.url}/api/v1/chat/snd`)).status).toBe(401);
});

test("a disabled surface is named, with the setting that enables it", async () => {
  await using other = await startGateway({
    config: { gateway: { rest: { enabled: false }, rpc: { enabled: false } }, webhooks: { enabled: false } },
  });
  const detailAt = (path: string) => detailOf(path, { url: other.url, token: consoleToken });
  expect(await detailAt("/api/v1/chat/send")).toBe(
    "There is nothing at /api/v1/chat/send: `rest` is off. A secret in gateway.rest.auth.keys opens it, unless gateway.rest.enabled is false.",
  );
  expect(await detailAt("/rpc/ws")).toContain("`rpc` is off. A secret in gateway.rpc.auth.tokens opens it");
  expect(await detailAt("/metrics")).toContain("`metrics` is off. A secret in gateway.rpc.auth.tokens opens it");
  expect(await detailAt("/hooks/wake")).toContain("`webhooks` is off. A secret in webhooks.token opens it");
});

test("a disabled console is named, with the setting that enables it", async () => {
  await using other = await startGateway({ config: { gateway: { console: { enabled: false } } } });
  expect(await detailOf("/console", { url: other.url })).toBe(
    "There is nothing at /console: `console` is off. A secret in gateway.console.token opens it, unless gateway.console.enabled is false.",
  );
});

test("a surface of another listener is named", async () => {
  const listeners = [
    { host: "127.0.0.1", port: 0, surfaces: ["rest" as const] },
    { host: "127.0.0.1", port: 0, surfaces: ["rpc" as const] },
  ];
  await using split = await startGateway({ config: { gateway: { port: undefined, listeners } } });
  expect(await detailOf("/rpc", { url: split.gateway.urls[0] as string })).toBe(
    "There is nothing at /rpc: `rpc` is not among the `surfaces` of this listener (gateway.listeners).",
  );
});

test("the log has the path, without its query and cut if it is long", async () => {
  await detailOf("/nothing/here?token=secret");
  await gateway.logged("request", { status: 404, operation: "unknown", path: "/nothing/here" });
  await detailOf(`/long/${"x".repeat(500)}`);
  await gateway.until(() => gateway.linesOf("request").find(({ path }) => String(path).startsWith("/long/")));
  for (const { path = "" } of gateway.linesOf("request")) expect(String(path).length).toBeLessThanOrEqual(200);
});
