import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import type { Index } from "#generated/rest-types.ts";
import { shareGateway, startGateway } from "#test/harness/gateway.ts";
import { exchange } from "#test/harness/raw.ts";

const gateway = await shareGateway();
const ROOT = { method: "GET", path: "/" };
const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

async function pathsAt(url: string): Promise<string[]> {
  const { text } = await exchange(url, ROOT);
  return (JSON.parse(text) as Index).paths.map(({ path }) => path);
}

test("GET / describes the gateway and lists its paths, for everyone", async () => {
  const { status, headers, text } = await exchange(gateway.url, ROOT);
  expect(status).toBe(200);
  expect(headers.get("content-type")).toBe("application/json");
  expect(headers.get("vary")).toBe("Accept");
  expect(JSON.parse(text)).toMatchObject({ name: "agent-gateway" });
  const always = ["/healthz", "/readyz"];
  const docs = ["/docs", "/openapi.json", "/openrpc.json"];
  expect(await pathsAt(gateway.url)).toEqual([
    "/api/v1",
    "/rpc",
    "/rpc/ws",
    "/hooks",
    "/console",
    ...docs,
    "/metrics",
    ...always,
  ]);
});

test("a browser gets a page that runs nothing, loads nothing, and links to paths that answer", async () => {
  const { status, headers, text } = await exchange(gateway.url, ROOT, { accept: BROWSER });
  expect(status).toBe(200);
  expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(headers.get("vary")).toBe("Accept");
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  const style = /<style>([\s\S]*?)<\/style>/.exec(text)?.[1] ?? "";
  const hash = createHash("sha256").update(style).digest("base64");
  expect(headers.get("content-security-policy")).toBe(
    `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  );
  expect(text).not.toMatch(/<script|\son\w+=|\sstyle=|\ssrc=|url\(|@import|http/i);
  for (const path of await pathsAt(gateway.url)) expect(text).toContain(path);
  const links = [...text.matchAll(/href="([^"]+)"/g)].map(([, path = ""]) => path);
  expect(links).toEqual(["/console", "/docs", "/openapi.json", "/openrpc.json", "/healthz", "/readyz"]);
  for (const path of links.filter((one) => one !== "/console"))
    expect((await exchange(gateway.url, { method: "GET", path })).status).toBe(200);
});

test.each(["*/*", "application/json", "text/html;q=0, */*", "text/plain"])("Accept: %s gets JSON", async (accept) => {
  expect((await exchange(gateway.url, ROOT, { accept })).headers.get("content-type")).toBe("application/json");
});

test("HEAD has only the head, and only GET and HEAD are accepted", async () => {
  const whole = await exchange(gateway.url, ROOT);
  const head = await exchange(gateway.url, { method: "HEAD", path: "/" });
  expect(head).toMatchObject({ status: 200, text: "" });
  expect(head.headers.get("content-length")).toBe(String(Buffer.byteLength(whole.text)));
  expect(await exchange(gateway.url, { method: "POST", path: "/" })).toMatchObject({ error: "method-not-allowed" });
  expect(await exchange(gateway.url, { method: "GET", path: "//healthz" })).toMatchObject({ error: "not-found" });
});

test("each listener lists what it serves, and only enabled surfaces", async () => {
  const listeners = [
    { host: "127.0.0.1", port: 0, surfaces: ["webhooks" as const] },
    { host: "127.0.0.1", port: 0, surfaces: ["rest" as const, "docs" as const, "console" as const] },
  ];
  const config = { gateway: { listeners, openai: { enabled: true } }, webhooks: { path: "/in" } };
  await using split = await startGateway({ config });
  const [outside = "", inside = ""] = split.gateway.urls;
  expect(await pathsAt(outside)).toEqual(["/in", "/healthz", "/readyz"]);
  const docs = ["/docs", "/openapi.json", "/openrpc.json"];
  expect(await pathsAt(inside)).toEqual(["/api/v1", "/v1", "/console", ...docs, "/healthz", "/readyz"]);
});
