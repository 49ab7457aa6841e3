import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:http2";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { SECRETS, shareGateway } from "#test/harness/gateway.ts";
import { noteChecked } from "#test/harness/ledger.ts";

const gateway = await shareGateway({ config: { gateway: { allowedOrigins: ["https://page.example"] } } });
const LONG = "A message that is said again. ".repeat(400);

type SentRequest = { method?: string; path: string; headers?: Record<string, string>; body?: string };
type Answer = { status: number; headers: Record<string, unknown>; bytes: Buffer };

/** Sends a request without the headers that a client library adds, and returns the raw bytes of the answer. */
async function overHttp1({ method = "GET", path, headers = {}, body }: SentRequest): Promise<Answer> {
  const sent = request(gateway.url + path, { method, headers });
  sent.end(body);
  const [answer] = await once(sent, "response");
  const bytes = Buffer.concat(await answer.toArray());
  return { status: answer.statusCode, headers: answer.headers, bytes };
}

async function overHttp2({ method = "GET", path, headers = {}, body }: SentRequest): Promise<Answer> {
  const session = connect(gateway.url);
  const stream = session.request({ ":method": method, ":path": path, ...headers }, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  const [head] = await once(stream, "response");
  const bytes = Buffer.concat(await stream.toArray());
  session.destroy();
  return { status: head[":status"], headers: head, bytes };
}

const json = { "content-type": "application/json" };
function chat(message: string): SentRequest {
  return {
    method: "POST",
    path: "/api/v1/chat/send",
    headers: { ...json, authorization: `Bearer ${SECRETS.key}` },
    body: JSON.stringify({ message }),
  };
}
function rpc(message: string): SentRequest {
  return {
    method: "POST",
    path: "/rpc",
    headers: { ...json, authorization: `Bearer ${SECRETS.rpcToken}` },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "agent.sendMessage",
      params: { agentName: "main", message, wait: true },
    }),
  };
}
const ASKS: [string, SentRequest][] = [
  ["REST", chat(LONG)],
  ["RPC", rpc(LONG)],
  ["the document of REST", { path: "/openapi.json" }],
  ["the document of RPC", { path: "/openrpc.json" }],
];

describe.each([
  ["HTTP/1.1", overHttp1],
  ["HTTP/2", overHttp2],
])("over %s", (_, send) => {
  const ask = async (what: SentRequest, accepted?: string, more: Record<string, string> = {}): Promise<Answer> => {
    const accepts: Record<string, string> = accepted === undefined ? {} : { "accept-encoding": accepted };
    const answer = await send({ ...what, headers: { ...what.headers, ...accepts, ...more } });
    noteChecked(String(answer.headers["x-request-id"]));
    return answer;
  };

  test.each(ASKS)("a large JSON answer is compressed for a client that accepts gzip: %s", async (_, what) => {
    const { status, headers, bytes } = await ask(what, "br, gzip;q=0.8");
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      "content-encoding": "gzip",
      "content-type": "application/json",
      vary: "Accept-Encoding",
    });
    expect(Number(headers["content-length"])).toBe(bytes.length);
    expect(headers).not.toHaveProperty("etag");
    const text = gunzipSync(bytes).toString();
    expect(JSON.parse(text)).toBeTypeOf("object");
    expect(text.length).toBeGreaterThan(bytes.length);
  });

  test.each(ASKS)("and sent uncompressed for any other client, with the same Vary: %s", async (_, what) => {
    for (const accepted of [undefined, "", "identity", "br", "gzip;q=0", "gzip; q=0.000, *", "not-gzip, gzipped"]) {
      const { headers, bytes } = await ask(what, accepted);
      expect(headers, String(accepted)).not.toHaveProperty("content-encoding");
      expect(headers.vary).toBe("Accept-Encoding");
      expect(Number(headers["content-length"])).toBe(bytes.length);
      expect(JSON.parse(bytes.toString())).toBeTypeOf("object");
    }
  });

  test("a small answer is not compressed and has no Vary", async () => {
    for (const what of [chat("Good morning"), rpc("x".repeat(2_800)), chat("é".repeat(2_800))]) {
      const { headers, bytes } = await ask(what, "gzip");
      expect(headers).not.toHaveProperty("content-encoding");
      expect(headers).not.toHaveProperty("vary");
      expect(bytes.toString()).toContain(JSON.parse(what.body as string).message ?? "x".repeat(2_800));
    }
  });

  test("a stream of events is not compressed", async () => {
    const what = chat(LONG);
    const body = JSON.stringify({ message: LONG, stream: true });
    const { headers, bytes } = await ask({ ...what, body }, "gzip");
    expect(headers).toMatchObject({ "content-type": expect.stringContaining("text/event-stream") });
    expect(headers).not.toHaveProperty("content-encoding");
    expect(bytes.toString()).toContain("event: ");
  });

  test("a page of another origin gets one Vary with both names", async () => {
    const { headers } = await ask(chat(LONG), "gzip", { origin: "https://page.example" });
    expect(headers.vary).toBe("Origin, Accept-Encoding");
  });

  test("many large answers at once arrive completely, whether there is capacity to compress them or not", async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => ask(chat(LONG), "gzip")));
    for (const { headers, bytes } of answers) {
      const text = headers["content-encoding"] === "gzip" ? gunzipSync(bytes) : bytes;
      expect(JSON.parse(text.toString()).reply).toContain(LONG.trim());
    }
  });

  test("HEAD of a document has the headers of GET, and no body", async () => {
    const { headers: whole } = await ask({ path: "/openapi.json" }, "gzip");
    const { headers, bytes } = await ask({ method: "HEAD", path: "/openapi.json" }, "gzip");
    expect(bytes).toHaveLength(0);
    expect(headers).toMatchObject({ "content-encoding": "gzip", "content-length": whole["content-length"] });
  });
});
