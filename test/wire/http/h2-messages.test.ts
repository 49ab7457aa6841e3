import { once } from "node:events";
import { type ClientHttp2Stream, connect, constants } from "node:http2";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createHttp2 } from "#wire/http/h2.ts";
import type { Http2Request, Http2Response } from "#wire/http/h2-messages.ts";
import { BY_CONNECTION } from "./listener.ts";

const TIMES = { headersMs: 10_000, requestMs: 10_000, idleMs: 10_000, stuckMs: 10_000, lastRequestsMs: 0 };

/** Sends the head of a POST, and returns both ends of it. */
async function begin(): Promise<{ req: Http2Request; res: Http2Response; client: ClientHttp2Stream }> {
  let received = (_: [Http2Request, Http2Response]) => {};
  const request = new Promise<[Http2Request, Http2Response]>((resolve) => (received = resolve));
  const http2 = createHttp2({ ...TIMES, resets: BY_CONNECTION, onRequest: (...both) => received(both) });
  const server = createServer((socket) => http2.take(socket)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`).on("error", () => {});
  onTestFinished(() => {
    session.destroy();
    server.close();
  });
  const client = session.request({ ":method": "POST" }).on("error", () => {});
  const [req, res] = await request;
  return { req, res, client };
}

test("a request whose body is cut off is not complete, and one whose body has ended is", async () => {
  const [cut, whole] = await Promise.all([begin(), begin()]);
  for (const { req, client } of [cut, whole]) {
    client.write("half a body");
    await once(req, "data");
    expect(req.complete).toBe(false);
  }
  cut.client.close(constants.NGHTTP2_CANCEL);
  whole.client.end();
  await Promise.all([once(cut.req, "close"), once(whole.req, "end")]);
  expect(cut.req.complete).toBe(false);
  expect(whole.req.complete).toBe(true);
});

test("a reply is destroyed when the client has aborted the request", async () => {
  const { res, client } = await begin();
  expect(res.destroyed).toBe(false);
  client.close(constants.NGHTTP2_CANCEL);
  await once(res, "close");
  expect(res.destroyed).toBe(true);
  expect(res.writableFinished).toBe(false);
});

test("a reply needs a drain while the client does not read, and finishes when the client has read everything", async () => {
  const { res, client } = await begin();
  client.pause();
  res.writeHead(200).write("x".repeat(1_000_000));
  expect(res.writableNeedDrain).toBe(true);
  client.resume();
  await once(res, "drain");
  expect(res.writableNeedDrain).toBe(false);
  expect(res.writableFinished).toBe(false);
  client.end();
  res.end();
  await once(res, "close");
  expect(res.writableFinished).toBe(true);
});
