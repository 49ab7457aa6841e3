import { describe, expect, test } from "vitest";
import { errorNameOf } from "#test/harness/contract.ts";
import { SECRETS, shareGateway, startGateway } from "#test/harness/gateway.ts";
import { openHttp2 } from "#test/harness/http2.ts";
import { openConnection, requestText } from "#test/harness/raw.ts";

const HEALTH = { method: "GET", path: "/healthz" };
const CHAT = { method: "POST", path: "/api/v1/chat/send" };
const json = { authorization: `Bearer ${SECRETS.key}`, "content-type": "application/json" };

describe("bytes that are not a request", async () => {
  const gateway = await shareGateway();
  const countOf = async (error: string) => {
    const text = await fetchMetrics();
    const line = text
      .split("\n")
      .find((row) => row.startsWith(`gateway_errors_total{surface="public",error="${error}"}`));
    return Number(line?.split(" ").at(-1) ?? 0);
  };
  const fetchMetrics = async (): Promise<string> => {
    await using client = await openHttp2(gateway.url);
    const { text } = await client.send(
      { method: "GET", path: "/metrics" },
      { authorization: `Bearer ${SECRETS.rpcToken}` },
    );
    return text;
  };

  test.each([
    ["nothing that is known", "this is no request\r\n\r\n", 400, "invalid-request"],
    ["a method that is not known", requestText({ method: "PRIVATE", path: "/x" }), 400, "invalid-request"],
    ["the method CONNECT", requestText({ method: "CONNECT", path: "example.com:443" }), 400, "invalid-request"],
    ["too large a head", requestText(HEALTH, { "x-padding": "a".repeat(17_000) }), 431, "headers-too-large"],
    ["too long a target", requestText({ ...HEALTH, path: `/${"a".repeat(17_000)}` }), 414, "uri-too-long"],
    [
      "a long target and a large head",
      requestText({ ...HEALTH, path: `/${"a".repeat(7_000)}` }, { a: "a".repeat(10_000) }),
      431,
      "headers-too-large",
    ],
    [
      "a target after a request",
      Buffer.concat([requestText(HEALTH), requestText({ ...HEALTH, path: `/${"a".repeat(17_000)}` })]),
      414,
      "uri-too-long",
    ],
  ])("that are %s are logged in an access line, and counted", async (_, bytes, status, error) => {
    const before = await countOf(error);
    await using connection = await openConnection(gateway.url);
    connection.write(bytes);
    if (error === "uri-too-long" && bytes.toString().startsWith("GET /healthz")) await connection.reply(HEALTH);
    const { requestId, status: given, problem } = await connection.reply({ method: "GET", path: "/nowhere" });
    expect([given, errorNameOf(problem)]).toEqual([status, error]);
    const line = await gateway.logged("request", { requestId });
    expect(line).toMatchObject({ surface: "public", operation: "unknown", status, error });
    expect(await countOf(error)).toBe(before + 1);
  });

  test("in a first line of two parts are 414", async () => {
    await using connection = await openConnection(gateway.url);
    connection.write(`GET /${"a".repeat(10_000)}`);
    await expect.poll(() => connection.taken()).toBeGreaterThan(10_000);
    await new Promise((resolve) => setTimeout(resolve, 50));
    connection.write(`${"a".repeat(10_000)} HTTP/1.1\r\nhost: localhost\r\n\r\n`);
    expect((await connection.reply({ method: "GET", path: "/nowhere" })).error).toBe("uri-too-long");
  });

  test.each([
    ["chat.send", CHAT, json],
    [
      "hooks.wake",
      { method: "POST", path: "/hooks/wake" },
      { ...json, authorization: `Bearer ${SECRETS.webhookToken}` },
    ],
  ])(
    "in the middle of a body are answered by the call that waits for the body: %s",
    async (operation, place, headers) => {
      await using connection = await openConnection(gateway.url);
      connection.write(requestText(place, { ...headers, "transfer-encoding": "chunked" }, "xyz\r\n"));
      const { requestId, error } = await connection.reply(place);
      expect(error).toBe("invalid-request");
      expect(await gateway.logged("request", { requestId })).toMatchObject({
        operation,
        status: 400,
        error,
      });
      expect(gateway.linesOf("request", { status: 499 })).toEqual([]);
      await connection.closed;
    },
  );

  test("in an incomplete head are 408, and an unstarted head gets no answer", async () => {
    await using impatient = await startGateway({ requestMs: 50 });
    await using quiet = await openConnection(impatient.url);
    await quiet.closed;
    expect(impatient.linesOf("request")).toEqual([]);
    await using slow = await openConnection(impatient.url);
    slow.write("GET /healthz HT");
    const { requestId } = await slow.reply({ method: "GET", path: "/nowhere" });
    const fields = { requestId, surface: "public", status: 408, error: "request-timeout" };
    expect(await impatient.logged("request", { requestId })).toMatchObject(fields);
  });
});
