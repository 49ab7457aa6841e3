import { readdirSync, readFileSync } from "node:fs";
import { type IncomingHttpHeaders, request } from "node:http";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { shareGateway } from "#test/harness/gateway.ts";

const FOLDER = new URL("../../../dist/console/", import.meta.url);
function asset(suffix: string) {
  return readdirSync(new URL("assets/", FOLDER)).find(
    (name) => name.startsWith("main-") && name.endsWith(suffix),
  ) as string;
}

/** The raw answer: `fetch` decompresses bodies and normalises paths. */
function callRaw(url: string, path: string, headers: Record<string, string> = {}) {
  return new Promise<{ status: number | undefined; headers: IncomingHttpHeaders; body: Buffer }>((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const sent = request({ hostname, port, path, headers }, async (answer) => {
      const parts: Buffer[] = [];
      for await (const part of answer) parts.push(part as Buffer);
      resolve({ status: answer.statusCode, headers: answer.headers, body: Buffer.concat(parts) });
    });
    sent.on("error", reject).end();
  });
}

describe("the console's files", async () => {
  const gateway = await shareGateway();
  const get = (path: string, headers: Record<string, string> = {}, method = "GET") =>
    fetch(gateway.url + path, { method, headers: { "accept-encoding": "identity", ...headers } });

  it.each(["/console", "/console/", "/console/d/dlv_01M7YN0XENG6PX2VW8BN0JQS4T", "/console/sessions?agent=main"])(
    "MUST serve the page at %s, under a strict policy",
    async (path) => {
      const answer = await get(path);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
      expect(answer.headers.get("cache-control")).toBe("no-cache");
      expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
      expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
      const policy = answer.headers.get("content-security-policy")?.split("; ");
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("script-src 'self'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).toContain("require-trusted-types-for 'script'");
      expect(answer.headers.get("set-cookie")).toBeNull();
      expect(await answer.text()).toContain('<script type="module" src="/console/assets/main-');
    },
  );

  it("MUST answer 304 to a client that has the page", async () => {
    const etag = (await get("/console")).headers.get("etag") as string;
    const again = await get("/console", { "if-none-match": etag });
    expect([again.status, await again.text()]).toEqual([304, ""]);
  });

  it("MUST serve an asset with an unlimited lifetime, in an encoding that the client accepts", async () => {
    const name = asset(".js");
    const whole = readFileSync(new URL(`assets/${name}`, FOLDER));
    const plain = await get(`/console/assets/${name}`);
    expect(plain.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(plain.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect(plain.headers.get("vary")).toContain("Accept-Encoding");
    expect(Buffer.from(await plain.arrayBuffer()).equals(whole)).toBe(true);
    // fetch decompresses the answer.
    const raw = async (accepts: string) => {
      const { headers, body } = await callRaw(gateway.url, `/console/assets/${name}`, { "accept-encoding": accepts });
      return { encoding: headers["content-encoding"], body };
    };
    const [gzip, other] = [await raw("gzip, deflate, br"), await raw("br, gzip;q=0")];
    expect([gzip.encoding, other.encoding]).toEqual(["gzip", undefined]);
    expect(gunzipSync(gzip.body).equals(whole)).toBe(true);
    expect(other.body.equals(whole)).toBe(true);
  });

  it("MUST serve every asset of the build", async () => {
    const names = readdirSync(new URL("assets/", FOLDER)).filter((name) => /\.(js|css)$/.test(name));
    expect(names.length).toBeGreaterThan(10);
    for (const name of names) expect((await get(`/console/assets/${name}`, {}, "HEAD")).status, name).toBe(200);
  });

  it.each([
    "/console/assets/none-ABCDEFGH.js",
    "/console/assets/",
    "/console/assets/..%2f..%2fmain.js",
    "/console/assets/%2e%2e/index.html",
    "/console/assets/main.js.map",
  ])("MUST answer 404 at %s", async (path) => {
    const { status } = await callRaw(gateway.url, path);
    expect(status).toBe(404);
  });

  it("MUST accept only GET and HEAD", async () => {
    const posted = await get("/console", {}, "POST");
    expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
    const head = await get("/console", {}, "HEAD");
    expect([head.status, await head.text()]).toEqual([200, ""]);
  });
});

describe("the files that the console loads", () => {
  it("MUST be at most 60 kB for the first page, compressed", () => {
    const page = readFileSync(new URL("index.html", FOLDER), "utf8");
    const named = [...page.matchAll(/\/console\/(assets\/[\w.-]+)/g)].map(([, path]) => path as string);
    const live = readdirSync(new URL("assets/", FOLDER)).filter((name) => /^page-\w+\.(js|css)$/.test(name));
    const sizeOf = (path: string) => readFileSync(new URL(`${path}.gz`, FOLDER)).length;
    const first = ["index.html", ...new Set(named)].reduce((sum, path) => sum + sizeOf(path), 0);
    const largestPage = Math.max(...live.map((name) => sizeOf(`assets/${name}`)));
    console.log(`The first load is ${((first + largestPage) / 1024).toFixed(1)} kB with the largest page.`);
    expect(first + largestPage).toBeLessThanOrEqual(60 * 1024);
  });

  it("MUST name no other host", () => {
    const files = readdirSync(new URL("assets/", FOLDER)).filter((name) => /\.(js|css)$/.test(name));
    const hosts = files.flatMap((name) => {
      const text = readFileSync(new URL(`assets/${name}`, FOLDER), "utf8");
      return [...text.matchAll(/\bhttps?:\/\/([\w.-]+\.[a-z]{2,})/g)].map(([, host]) => host);
    });
    // Names of XML, and an address in a library's error message; the pages' policy does not allow to load anything from there.
    expect([...new Set(hosts)].filter((host) => host !== "www.w3.org" && host !== "github.com")).toEqual([]);
  });
});
