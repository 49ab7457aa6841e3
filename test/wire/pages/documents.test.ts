import { describe, expect, test } from "vitest";
import { shareGateway, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { noteChecked } from "#test/harness/ledger.ts";
import { exchange } from "#test/harness/raw.ts";

const proxied = { trustedProxies: ["127.0.0.1"] };
const everywhere = await shareGateway({ config: { gateway: { host: "0.0.0.0" } } });
const behindProxy = await shareGateway({ config: { gateway: { host: "0.0.0.0", ...proxied } } });
const local = await shareGateway({ config: { gateway: { allowedOrigins: ["https://gateway.example"] } } });

function portOf({ url }: TestGateway) {
  return new URL(url).port;
}
/** The address of the gateway in the served documents, for a request with this Host. */
async function addressesFor(gateway: TestGateway, host: string, headers: Record<string, string> = {}) {
  const url = `http://127.0.0.1:${portOf(gateway)}`;
  const read = async (path: string) => {
    const { text } = await exchange(url, { method: "GET", path }, { host, ...headers });
    return (JSON.parse(text) as { servers: { url: string }[] }).servers.map((server) => server.url);
  };
  const [openapi, openrpc] = [await read("/openapi.json"), await read("/openrpc.json")];
  return { openapi, openrpc };
}

describe("the served documents", () => {
  test.each(["gateway.internal:8080", "192.0.2.7", "[2001:db8::1]:443", "localhost"])(
    "have the address that the caller used: %s",
    async (host) => {
      const { openapi, openrpc } = await addressesFor(everywhere, host);
      expect(openapi).toEqual([`http://${host}`]);
      expect(openrpc).toEqual([expect.stringMatching(/\/rpc$/)]);
    },
  );

  test.each([
    "",
    "evil.example/path",
    "user@evil.example",
    'a"b',
    "<script>",
    "a b",
    "host:99999",
    "[::1",
    "a".repeat(300),
  ])("have the address of this machine for an invalid Host: %j", async (host) => {
    const { openapi } = await addressesFor(everywhere, host);
    expect(openapi).toEqual([`http://127.0.0.1:${portOf(everywhere)}`]);
  });

  test("have https if a trusted proxy reports it, and not if another client does", async () => {
    const sent = { "x-forwarded-proto": "https", "x-forwarded-for": "192.0.2.1" };
    expect(await addressesFor(behindProxy, "api.example", sent)).toMatchObject({ openapi: ["https://api.example"] });
    expect(await addressesFor(everywhere, "api.example", sent)).toMatchObject({ openapi: ["http://api.example"] });
  });

  test("on a listener for only this machine have only its own hosts", async () => {
    expect((await addressesFor(local, "gateway.example")).openapi).toEqual(["http://gateway.example"]);
    expect((await addressesFor(local, "localhost:1234")).openapi).toEqual(["http://localhost:1234"]);
    expect((await addressesFor(local, "evil.example")).openapi).toEqual([local.url]);
  });

  test("read on another port have the port that serves the calls", async () => {
    const listeners = [
      { host: "0.0.0.0", port: 0, surfaces: ["docs" as const] },
      { host: "0.0.0.0", port: 0, surfaces: ["rest" as const] },
    ];
    await using split = await startGateway({ config: { gateway: { listeners } } });
    const [, calls] = split.gateway.urls.map((url) => new URL(url).port);
    expect((await addressesFor(split, "192.0.2.7:99")).openapi).toEqual([`http://192.0.2.7:${calls}`]);
  });
});

describe("the documentation at /docs", () => {
  const get = (path: string, headers: Record<string, string> = {}) => fetch(local.url + path, { headers });

  test("is public: its pages may use only its own scripts, styles and pictures", async () => {
    const { status, headers, text } = await local.rest.call("ops.docs", { key: null });
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
        "base-uri 'self'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(text).not.toMatch(/<script>|\son\w+=|\sstyle=|<style/i);
    expect(text).toContain('<base href="docs/">');
  });

  test.each([
    ["/docs/", "text/html"],
    ["/docs/errors.html", "text/html"],
    ["/docs/errors.md", "text/markdown"],
    ["/docs/style.css", "text/css"],
    ["/docs/site.js", "text/javascript"],
    ["/docs/llms.txt", "text/plain"],
    ["/docs/llms-full.txt", "text/plain"],
  ])("has %s", async (path, type) => {
    const plain = await get(path, { "accept-encoding": "identity" });
    expect([plain.status, plain.headers.get("content-type")]).toEqual([200, `${type}; charset=utf-8`]);
    const packed = await get(path);
    expect(packed.headers.get("content-encoding")).toBe("gzip");
    expect(await packed.text()).toBe(await plain.text());
  });

  test("has the pages for users in one text", async () => {
    const whole = await get("/docs/llms-full.txt");
    expect(whole.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    const text = await whole.text();
    for (const name of ["quickstart", "errors"])
      expect(text).toContain(`\n\n---\n\n${await (await get(`/docs/${name}.md`)).text()}`);
    expect(text).not.toContain("\n# Changelog\n");
  });

  test.each([
    ["llms-full.txt", false],
    ["llms.txt", true],
  ])("has the headers of its other files for %s, and 304 for a client that has it", async (name, isEnabled) => {
    await using gateway = await startGateway({ config: { gateway: { mcp: { enabled: isEnabled } } } });
    const read = (file: string, headers = {}) => fetch(`${gateway.url}/docs/${file}`, { headers });
    const namesOf = ({ headers }: Response) => [...headers.keys()].toSorted();
    const [file, page] = [await read(name), await read("errors.md")];
    expect(namesOf(file)).toEqual(namesOf(page));
    for (const header of ["cache-control", "content-security-policy", "content-encoding", "vary"])
      expect(file.headers.get(header)).toBe(page.headers.get(header));
    expect((await read(name, { "if-none-match": file.headers.get("etag") as string })).status).toBe(304);
    expect((await read(name, { "accept-encoding": "identity" })).headers.get("content-encoding")).toBe(null);
  });

  test("names the MCP server to language models, while it is on", async () => {
    expect(await (await get("/docs/llms.txt")).text()).not.toContain("/mcp)");
    await using open = await startGateway({ config: { gateway: { mcp: { enabled: true } } } });
    const list = await fetch(`${open.url}/docs/llms.txt`);
    expect(list.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    const text = await list.text();
    expect(text).toContain(`[MCP server](${open.url}/mcp)`);
    expect(text).toContain("(mcp.md)");
  });

  test("is sent to a page under any name, and 304 to a client that has it", async () => {
    const by = (headers: Record<string, string>) => exchange(local.url, { method: "GET", path: "/docs" }, headers);
    const named = await by({ host: "docs.example" });
    expect(named.status).toBe(200);
    expect((await by({ "if-none-match": named.headers.get("etag") as string })).status).toBe(304);
  });

  test.each([
    ["/docs/errors", "errors.html"],
    ["/docs/errors/", "../errors.html"],
    ["/docs/Configuration", "configuration.html"],
  ])("%s leads to the page", async (path, to) => {
    const answer = await exchange(local.url, { method: "GET", path });
    expect([answer.status, answer.headers.get("location")]).toEqual([302, to]);
    const there = await fetch(local.url + path);
    noteChecked(there.headers.get("x-request-id") ?? "");
    expect([there.status, new URL(there.url).pathname]).toEqual([200, `/docs/${to.replace("../", "")}`]);
  });

  test.each([
    ["/docs/nope", "./"],
    ["/docs/nope.html", "./"],
    ["/docs/deep/down/nope", "../../"],
    [`/docs/${"<script>".repeat(9)}`, "./"],
  ])("a browser finds the list of all pages and a search at %s", async (path, base) => {
    const answer = await get(path, { accept: "text/html,*/*;q=0.8" });
    const html = await answer.text();
    expect([answer.status, answer.headers.get("content-type")]).toEqual([404, "text/html; charset=utf-8"]);
    expect(answer.headers.get("content-security-policy")).toContain("default-src 'none'; script-src 'self'");
    expect(html).toContain(`<base href="${base}">`);
    expect(html).toContain("Page not found");
    expect(html).toContain('<a href="configuration.html">');
    expect(html).toContain('type="search"');
    expect(html).not.toContain("<script>");
  });

  test("a client that does not accept HTML gets the name of the intended page", async () => {
    const detailOf = async (path: string) => {
      const answer = await get(path, { accept: "*/*" });
      return ((await answer.json()) as { detail: string }).detail;
    };
    expect(await detailOf("/docs/configuraton")).toBe(
      "There is nothing at /docs/configuraton. Did you mean /docs/configuration.html?",
    );
    expect(await detailOf("/docs/zzzzzz")).toBe("There is nothing at /docs/zzzzzz. The overview is at /docs.");
  });

  test("is read-only, and no file outside of it can be reached", async () => {
    const ask = (method: string, path: string) => exchange(local.url, { method, path });
    expect((await ask("HEAD", "/docs")).headers.get("content-length")).toMatch(/^\d{5,6}$/);
    expect((await ask("POST", "/docs")).error).toBe("method-not-allowed");
    for (const path of [
      "/docs/more",
      "/docs/none.html",
      "/docs/../main.js",
      "/docs/..%2fmain.js",
      "/docs/images/../errors.html",
      "/docs/errors.html.gz",
    ])
      expect((await ask("GET", path)).error).toBe("not-found");
  });
});
