import { once } from "node:events";
import { readFileSync } from "node:fs";
import { constants } from "node:http2";
import { connect } from "node:tls";
import { describe, expect, test } from "vitest";
import { createPuppet } from "#test/harness/backends.ts";
import { SECRETS, shareGateway, startGateway } from "#test/harness/gateway.ts";
import { CERTIFICATE, OVER_TLS, openHttp2 } from "#test/harness/http2.ts";

const CHAT = { method: "POST", path: "/api/v1/chat/send" };
const HEALTH = { method: "GET", path: "/healthz" };
const json = { authorization: `Bearer ${SECRETS.key}`, "content-type": "application/json" };
const STREAMED = JSON.stringify({ message: "hi", stream: true });

describe("over TLS", () => {
  const offer = async (url: string, ALPNProtocols?: string[]) => {
    const socket = connect({
      port: Number(new URL(url).port),
      host: "localhost",
      ca: CERTIFICATE,
      ...(ALPNProtocols && { ALPNProtocols }),
    });
    await once(socket, "secureConnect");
    const { alpnProtocol } = socket;
    socket.destroy();
    return alpnProtocol;
  };

  test("the client's offer decides: HTTP/2 if it is offered, else HTTP/1.1", async () => {
    await using gateway = await startGateway({ config: OVER_TLS });
    expect(await offer(gateway.url, ["h2", "http/1.1"])).toBe("h2");
    expect(await offer(gateway.url, ["http/1.1", "h2"])).toBe("h2");
    expect(await offer(gateway.url, ["http/1.1"])).toBe("http/1.1");
    expect(await offer(gateway.url)).toBe(false);
  });

  test("a renewed certificate is used at once, and open connections continue", async () => {
    await using gateway = await startGateway({ config: OVER_TLS });
    await using before = await openHttp2(gateway.url);
    const file = (name: string) => `test/config/tls/${name}.pem`;
    const tls = { cert: file("other-cert"), key: file("other-key") };
    await gateway.reload({ gateway: { listeners: [{ port: 0, tls }] } });
    expect((await before.send(HEALTH)).status).toBe(200);
    await using after = await openHttp2(gateway.url, { ca: readFileSync(file("other-cert"), "utf8") });
    expect((await after.send(HEALTH)).status).toBe(200);
    await expect(openHttp2(gateway.url)).rejects.toThrow(/certificate/);
  });
});

describe("a streamed reply over HTTP/2", async () => {
  const puppet = createPuppet();
  const gateway = await shareGateway({ makeBackend: () => puppet.backend });

  test("arrives while it is written, also for two readers on one connection", async () => {
    await using client = await openHttp2(gateway.url);
    const first = await client.stream(CHAT, json, STREAMED);
    const one = await puppet.next();
    const second = await client.stream(CHAT, json, STREAMED);
    const two = await puppet.next();
    one.say("one");
    await first.arrived(2);
    two.say("two");
    await second.arrived(2);
    two.end();
    one.end();
    expect((await first.all()).at(-1)?.data.reply).toBe("one");
    expect((await second.all()).at(-1)?.data.reply).toBe("two");
  });

  test("can be read later if its reader aborts", async () => {
    await using client = await openHttp2(gateway.url);
    const reading = await client.stream(CHAT, json, STREAMED);
    const turn = await puppet.next();
    turn.say("one ");
    await reading.arrived(2);
    const turnId = turn.turn.turnId;
    reading.stream.close(constants.NGHTTP2_CANCEL);
    await gateway.logged("request", { requestId: reading.requestId });
    expect(turn.signal.aborted).toBe(false);
    turn.say("two");
    const place = { method: "GET", path: `/api/v1/turns/${turnId}/events` };
    const again = await client.stream(place, { authorization: json.authorization });
    turn.end();
    expect((await again.all()).at(-1)).toMatchObject({ event: "turn.completed", data: { reply: "one two" } });
  });
});
