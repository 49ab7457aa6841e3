import { describe, expect, it } from "vitest";
import { START } from "#test/harness/clock.ts";
import { type ChannelUnderTest, callsOn, failed, type Opened, replyOf, SECRET } from "./channel-under-test.ts";
import {
  answer,
  type Behaviour,
  CERTIFICATE,
  endless,
  endlessAnswer,
  hang,
  leave,
  OTHER_CERTIFICATE,
  reset,
  stallAfter,
  startReceiver,
  write,
} from "./receiver.ts";

const BROKEN: Record<string, Behaviour> = {
  "resets the connection": reset,
  "leaves without an answer": leave,
  "answers something else": write("SSH-2.0-OpenSSH_9.2\r\n"),
  "answers a head without an end": endless("HTTP/1.1 200 OK\r\n", `x-a: ${"a".repeat(1_000)}\r\n`),
  "answers with two lengths": write("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"),
};

/** The requirements of channel.ts for every channel, tested with misbehaving servers. */
export function channelSuite(underTest: ChannelUnderTest): void {
  const { announceTo, openFor } = callsOn(underTest);

  describe(`the ${underTest.name} channel`, () => {
    it.each([200, 201, 202, 204, 299])("counts %i as delivered", async (code) => {
      expect(await announceTo(answer(code))).toEqual({ kind: "delivered", code });
    });

    it("counts 410 as a permanent refusal", async () => {
      expect(await announceTo(answer(410))).toEqual({ kind: "refused", code: 410, reason: "410 Gone" });
    });

    it.each([400, 401, 403, 404, 409, 429, 500, 502, 503])("may retry after %i", async (code) => {
      expect(await announceTo(answer(code, {}, "no"))).toEqual(failed(`HTTP ${code}`, { code }));
    });

    it.each([300, 301, 302, 303, 307, 308])("MUST not follow a redirect (%i): F32", async (code) => {
      await using inside = await startReceiver();
      const outcome = await announceTo(answer(code, { location: `${inside.url}/latest/meta-data` }));
      expect(outcome).toEqual(failed(`HTTP ${code}, and redirects are not followed`, { code }));
      expect(inside.connections()).toBe(0);
    });

    it("returns the pause that the receiver requests", async () => {
      const waitOf = async (value: string) =>
        ((await announceTo(answer(429, { "retry-after": value }))) as { retryAfterMs?: number }).retryAfterMs;
      expect(await waitOf("7")).toBe(7_000);
      expect(await waitOf(new Date(START + 90_000).toUTCString())).toBe(90_000);
      expect(await waitOf(new Date(START - 90_000).toUTCString())).toBe(0);
      for (const nonsense of ["soon", "-1", "1e3", "99999999999999", "Sat 21 Nov"])
        expect(await waitOf(nonsense)).toBe(undefined);
    });

    it("waits 15 s for an answer", async () => {
      const outcome = await announceTo(hang, {
        meanwhile: async ({ clock, timersSet }) => {
          await timersSet(1);
          await clock.advance(14_999);
          expect(clock.timers()).toBe(1);
          await clock.advance(1);
        },
      });
      expect(outcome).toEqual(failed("it did not answer in time"));
    });

    it("uses the status if the rest of the answer does not arrive", async () => {
      const meanwhile = async ({ clock, timersSet }: Opened) => {
        // First for the answer, then for its rest.
        await timersSet(2);
        await clock.advance(5_000);
      };
      expect(await announceTo(stallAfter(200), { meanwhile })).toEqual({ kind: "delivered", code: 200 });
      expect(await announceTo(stallAfter(503), { meanwhile })).toEqual(failed("HTTP 503", { code: 503 }));
    });

    it("reads only the necessary part of an endless answer", async () => {
      expect(await announceTo(endlessAnswer(200))).toEqual({ kind: "delivered", code: 200 });
      expect(await announceTo(endlessAnswer(500))).toEqual(failed("HTTP 500", { code: 500 }));
    });

    it("may retry if the receiver sends interim answers without an end", async () => {
      const interim = endless("", "HTTP/1.1 102 Processing\r\n\r\n");
      expect(await announceTo(interim)).toEqual(failed("it sent too many interim answers"));
      const early = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(3);
      expect(await announceTo(write(`${early}HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n`))).toEqual({
        kind: "delivered",
        code: 200,
      });
    });

    it("speaks no other protocol", async () => {
      const upgrade = write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");
      expect(await announceTo(upgrade)).toEqual(failed("it closed the connection early"));
    });

    it("limits the time for a connection to a server that never finishes the handshake", async () => {
      await using silent = await startReceiver();
      const { channel, clock, signal } = openFor({ url: silent.url.replace("http:", "https:") });
      expect(await channel.announce(replyOf(), signal)).toEqual(
        failed("it cannot be reached: no connection to it in time"),
      );
      expect(clock.timers()).toBe(0);
    });

    for (const [what, behaviour] of Object.entries(BROKEN)) {
      it(`may retry if the receiver ${what}`, async () => {
        expect(await announceTo(behaviour)).toEqual(
          failed(
            /^it (closed the connection early|cannot be used: (its answer is not HTTP|the head of its answer is too long))$/,
          ),
        );
      });
    }

    it("may retry if nothing listens, and if the name does not exist", async () => {
      const { url } = await (async () => {
        await using gone = await startReceiver();
        return { url: gone.url };
      })();
      const refused = openFor({ url });
      expect(await refused.channel.announce(replyOf(), refused.signal)).toEqual(
        failed("it cannot be reached: nothing listens at its address"),
      );
      const unknown = openFor({ url: "http://no-such-host.invalid" });
      expect(await unknown.channel.announce(replyOf(), unknown.signal)).toEqual(
        failed(/^it cannot be reached: its host name/),
      );
      expect(refused.clock.timers() + unknown.clock.timers()).toBe(0);
    });

    it("reaches a receiver by its name", async () => {
      await using receiver = await startReceiver();
      const { channel, signal } = openFor({ url: `http://localhost:${receiver.port}` });
      expect(await channel.announce(replyOf(), signal)).toEqual({ kind: "delivered", code: 200 });
    });

    it("MUST send nothing to a server with an untrusted certificate", async () => {
      await using receiver = await startReceiver([answer(200)], { tls: CERTIFICATE });
      const trusted = openFor(receiver, { ca: CERTIFICATE.cert });
      expect(await trusted.channel.announce(replyOf(), trusted.signal)).toEqual({ kind: "delivered", code: 200 });
      for (const ca of [undefined, OTHER_CERTIFICATE.cert]) {
        const { channel, signal } = openFor(receiver, ca === undefined ? {} : { ca });
        expect(await channel.announce(replyOf(), signal)).toEqual(failed(/^it cannot be used: its certificate/));
      }
      const misnamed = openFor({ url: receiver.url.replace("127.0.0.1", "127.0.0.2") }, { ca: CERTIFICATE.cert });
      expect(await misnamed.channel.announce(replyOf(), misnamed.signal)).toEqual(
        failed(/^it cannot be used: its certificate/),
      );
      expect(receiver.requests).toHaveLength(1);
    });

    it("MUST check certificates, whatever the environment says", async () => {
      process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
      try {
        expect(await announceTo(answer(200), { tls: CERTIFICATE })).toEqual(
          failed(/^it cannot be used: its certificate/),
        );
      } finally {
        delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
      }
    });

    it("MUST connect to its address, whatever proxy the environment names", async () => {
      await using proxy = await startReceiver();
      const names = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "NODE_USE_ENV_PROXY"];
      for (const variable of names) process.env[variable] = proxy.url;
      try {
        expect(await announceTo(answer(200))).toEqual({ kind: "delivered", code: 200 });
      } finally {
        for (const variable of names) delete process.env[variable];
      }
      expect(proxy.connections()).toBe(0);
    });

    it("stops at its signal, in any state", async () => {
      const stopped = failed("the gateway stopped");
      expect(await announceTo(hang, { meanwhile: ({ abort }) => abort() })).toEqual(stopped);
      await using silent = await startReceiver();
      const connecting = openFor({ url: silent.url.replace("http:", "https:") });
      const announced = connecting.channel.announce(replyOf(), connecting.signal);
      await silent.connected(1);
      connecting.abort();
      expect(await announced).toEqual(stopped);
      expect(await connecting.channel.announce(replyOf(), connecting.signal)).toEqual(stopped);
      await silent.left();
      expect(silent.connections()).toBe(1);
    });

    it("leaves no listener on a signal after its end", async () => {
      await using receiver = await startReceiver([answer(200), reset]);
      const { channel, signal } = openFor(receiver);
      let listeners = 0;
      const add = signal.addEventListener.bind(signal);
      const remove = signal.removeEventListener.bind(signal);
      signal.addEventListener = (...args: Parameters<typeof add>) => {
        listeners++;
        add(...args);
      };
      signal.removeEventListener = (...args: Parameters<typeof remove>) => {
        listeners--;
        remove(...args);
      };
      await channel.announce(replyOf(), signal);
      await channel.announce(replyOf(), signal);
      expect(listeners).toBe(0);
    });

    it("posts JSON to its address, on a separate connection", async () => {
      await using receiver = await startReceiver();
      const { channel, signal } = openFor(receiver);
      await channel.announce(replyOf({ reply: "Ünï 🙂" }), signal);
      await channel.announce(replyOf({ hops: 2 }), signal);
      const [first, second] = receiver.requests;
      expect(first).toMatchObject({ method: "POST", path: "/in?of=ops" });
      expect(first?.headers).toMatchObject({
        "content-type": "application/json",
        "content-length": String(first?.body.length),
        "x-gateway-hops": "1",
        host: `127.0.0.1:${receiver.port}`,
      });
      expect(JSON.stringify(JSON.parse(String(first?.body)))).toContain("Ünï 🙂");
      expect(second?.headers["x-gateway-hops"]).toBe("3");
      expect(receiver.connections()).toBe(2);
    });

    it("sends many concurrently, each separately, and a long one completely", async () => {
      await using receiver = await startReceiver();
      const { channel, signal } = openFor(receiver);
      const texts = Array.from({ length: 50 }, (_, n) => `number ${n}`);
      const outcomes = await Promise.all(texts.map((reply) => channel.announce(replyOf({ reply }), signal)));
      expect(outcomes.every(({ kind }) => kind === "delivered")).toBe(true);
      const bodies = receiver.requests.map(({ body }) => String(body));
      for (const text of texts) expect(bodies.filter((body) => body.includes(`"${text}"`))).toHaveLength(1);
      await channel.announce(replyOf({ reply: "x".repeat(4 * 1024 ** 2) }), signal);
      expect(() => JSON.parse(String(receiver.requests.at(-1)?.body))).not.toThrow();
    });

    it("sends the same at every attempt, except for the necessary changes", async () => {
      await using receiver = await startReceiver([answer(500), answer(200)]);
      const { channel, clock, signal } = openFor(receiver);
      await channel.announce(replyOf(), signal);
      await clock.advance(60_000);
      await channel.announce(replyOf(), signal);
      const [first, second] = receiver.requests;
      expect(second?.body).toEqual(first?.body);
      expect(second?.headers["webhook-id"]).toBe(first?.headers["webhook-id"]);
    });

    it("MUST not show its address or its secret in an error", async () => {
      const told: string[] = [];
      for (const behaviour of [reset, answer(302, { location: "/in?of=ops" }), answer(500, {}, SECRET)]) {
        told.push(JSON.stringify(await announceTo(behaviour)));
      }
      expect(told.join()).not.toMatch(/127\.0\.0\.1|of=ops|a-secret/);
    });
  });
}
