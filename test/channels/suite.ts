import { setMaxListeners } from "node:events";
import { describe, expect, it } from "vitest";
import type { AnnouncedReply, Channel, Outcome } from "#channels/channel.ts";
import { createPost, type Post } from "#channels/post.ts";
import type { Clock } from "#core/clock.ts";
import { createManualClock, START } from "#test/harness/clock.ts";
import {
  answer,
  type Behaviour,
  CERTIFICATE,
  endless,
  endlessAnswer,
  hang,
  leave,
  OTHER_CERTIFICATE,
  type Receiver,
  reset,
  stallAfter,
  startReceiver,
  write,
} from "./receiver.ts";

/** A channel as the suite is run against it. */
export type ChannelUnderTest = {
  name: string;
  open(url: string, parts: { post: Post; clock: Clock }): Channel;
};

export const SECRET = "a-secret-that-signs-announcements";

export const replyOf = (more: Partial<AnnouncedReply> = {}): AnnouncedReply => ({
  turnId: "turn_01M7YN0XEMM1B7E5S8YF3GKP2N",
  sessionId: "webhook:alerts",
  agent: "main",
  channel: "ops",
  model: undefined,
  reply: "Three alerts.",
  usage: { input: 12, output: 34 },
  deliveryId: "dlv_01M7YN0XENG6PX2VW8BN0JQS4T",
  createdAt: START,
  endedAt: START + 1_333,
  hops: 0,
  ...more,
});

const failed = (reason: string | RegExp, more: object = {}): Outcome =>
  ({
    kind: "failed",
    code: undefined,
    reason: typeof reason === "string" ? reason : expect.stringMatching(reason),
    retryAfterMs: undefined,
    ...more,
  }) as Outcome;

/** A clock that tells when so many timers have been set. */
const createWatchedClock = () => {
  const clock = createManualClock();
  let count = 0;
  let look = () => {};
  const { after } = clock;
  clock.after = (ms, fire) => {
    count++;
    look();
    return after(ms, fire);
  };
  const timersSet = (wanted: number): Promise<void> =>
    new Promise((resolve) => {
      look = () => count >= wanted && setImmediate(resolve);
      look();
    });
  return { clock, timersSet };
};

/** What channel.ts asks of every channel, against servers that behave badly. */
export const channelSuite = ({ name, open }: ChannelUnderTest): void => {
  /** Announces once to a server that does this. `meanwhile` runs as soon as the request, or the connection, is there. */
  const announceTo = async (
    behaviour: Behaviour,
    {
      meanwhile,
      ...options
    }: Partial<Parameters<typeof openFor>[1]> & { meanwhile?: (opened: Opened) => unknown } = {},
  ): Promise<Outcome> => {
    await using receiver = await startReceiver([behaviour], { tls: options.tls });
    const opened = openFor(receiver, options);
    const announced = opened.channel.announce(replyOf(), opened.signal);
    if (meanwhile) await Promise.race([announced, receiver.received(1).then(() => meanwhile(opened))]);
    const outcome = await announced;
    await receiver.left();
    expect(opened.clock.timers()).toBe(0);
    return outcome;
  };
  const openFor = (
    { url }: Pick<Receiver, "url">,
    { ca, path = "/in?of=ops" }: { ca?: string; path?: string; tls?: { cert: string; key: string } | undefined } = {},
  ) => {
    const { clock, timersSet } = createWatchedClock();
    const controller = new AbortController();
    setMaxListeners(50, controller.signal);
    const channel = open(url + path, { post: createPost({ clock, ca }), clock });
    return { channel, clock, timersSet, signal: controller.signal, abort: () => controller.abort() };
  };
  type Opened = ReturnType<typeof openFor>;

  describe(`the ${name} channel`, () => {
    it("posts JSON to its address, on a connection of its own", async () => {
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

    it.each([200, 201, 202, 204, 299])("counts %i as delivered", async (code) => {
      expect(await announceTo(answer(code))).toEqual({ kind: "delivered", code });
    });

    it("counts 410 as refused for good", async () => {
      expect(await announceTo(answer(410))).toEqual({ kind: "refused", code: 410, reason: "it answered 410, gone" });
    });

    it.each([400, 401, 403, 404, 409, 429, 500, 502, 503])("may try again after %i", async (code) => {
      expect(await announceTo(answer(code, {}, "no"))).toEqual(failed(`it answered ${code}`, { code }));
    });

    it.each([300, 301, 302, 303, 307, 308])("MUST not follow a redirect (%i): F32", async (code) => {
      await using inside = await startReceiver();
      const outcome = await announceTo(answer(code, { location: `${inside.url}/latest/meta-data` }));
      expect(outcome).toEqual(failed(`it answered ${code}, and redirects are not followed`, { code }));
      expect(inside.connections()).toBe(0);
    });

    it("tells how long the receiver wants to be left alone", async () => {
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
          await timersSet(2);
          await clock.advance(14_999);
          expect(clock.timers()).toBe(1);
          await clock.advance(1);
        },
      });
      expect(outcome).toEqual(failed("no answer within 15 s"));
    });

    it("waits 5 s for a connection: a server that never says hello", async () => {
      await using silent = await startReceiver();
      const { channel, clock, signal } = openFor({ url: silent.url.replace("http:", "https:") });
      const announced = channel.announce(replyOf(), signal);
      await silent.connected(1);
      await clock.advance(5_000);
      expect(await announced).toEqual(failed("no connection within 5 s"));
      expect(clock.timers()).toBe(0);
    });

    it("takes the status for the answer where the rest does not come", async () => {
      const meanwhile = async ({ clock, timersSet }: Opened) => {
        // For the connection, for the head, and then for the rest.
        await timersSet(3);
        await clock.advance(5_000);
      };
      expect(await announceTo(stallAfter(200), { meanwhile })).toEqual({ kind: "delivered", code: 200 });
      expect(await announceTo(stallAfter(503), { meanwhile })).toEqual(failed("it answered 503", { code: 503 }));
    });

    it("reads no more than it must of an answer without an end", async () => {
      const before = process.memoryUsage().arrayBuffers;
      expect(await announceTo(endlessAnswer(200))).toEqual({ kind: "delivered", code: 200 });
      expect(await announceTo(endlessAnswer(500))).toEqual(failed("it answered 500", { code: 500 }));
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(32 * 1024 ** 2);
    });

    const BROKEN: Record<string, Behaviour> = {
      "resets the connection": reset,
      "leaves without an answer": leave,
      "answers something else": write("SSH-2.0-OpenSSH_9.2\r\n"),
      "answers a head without an end": endless("HTTP/1.1 200 OK\r\n", `x-a: ${"a".repeat(1_000)}\r\n`),
      "answers with two lengths": write("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"),
    };
    for (const [what, behaviour] of Object.entries(BROKEN)) {
      it(`may try again when the receiver ${what}`, async () => {
        expect(await announceTo(behaviour)).toEqual(failed(/^the connection failed \([A-Z_0-9]+\)$/));
      });
    }

    it("may try again when the receiver goes on announcing an answer", async () => {
      const interim = endless("", "HTTP/1.1 102 Processing\r\n\r\n");
      expect(await announceTo(interim)).toEqual(failed("its answer has no end"));
      const early = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(3);
      expect(await announceTo(write(`${early}HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n`))).toEqual({
        kind: "delivered",
        code: 200,
      });
    });

    it("takes no other protocol", async () => {
      const upgrade = write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");
      expect(await announceTo(upgrade)).toEqual(failed("it answered 101", { code: 101 }));
    });

    it("may try again when nobody listens, and when nobody has the name", async () => {
      const { url } = await (async () => {
        await using gone = await startReceiver();
        return { url: gone.url };
      })();
      const refused = openFor({ url });
      expect(await refused.channel.announce(replyOf(), refused.signal)).toEqual(
        failed("the connection failed (ECONNREFUSED)"),
      );
      const unknown = openFor({ url: "http://no-such-host.invalid" });
      expect(await unknown.channel.announce(replyOf(), unknown.signal)).toEqual(
        failed(/^the connection failed \((ENOTFOUND|EAI_AGAIN)\)$/),
      );
      expect(refused.clock.timers() + unknown.clock.timers()).toBe(0);
    });

    it("reaches a receiver by its name", async () => {
      await using receiver = await startReceiver();
      const { channel, signal } = openFor({ url: `http://localhost:${receiver.port}` });
      expect(await channel.announce(replyOf(), signal)).toEqual({ kind: "delivered", code: 200 });
    });

    it("MUST send nothing to a server whose certificate it does not trust", async () => {
      await using receiver = await startReceiver([answer(200)], { tls: CERTIFICATE });
      const trusted = openFor(receiver, { ca: CERTIFICATE.cert });
      expect(await trusted.channel.announce(replyOf(), trusted.signal)).toEqual({ kind: "delivered", code: 200 });
      for (const ca of [undefined, OTHER_CERTIFICATE.cert]) {
        const { channel, signal } = openFor(receiver, ca === undefined ? {} : { ca });
        expect(await channel.announce(replyOf(), signal)).toEqual(failed(/^the connection failed \([A-Z_]+\)$/));
      }
      const misnamed = openFor({ url: receiver.url.replace("127.0.0.1", "127.0.0.2") }, { ca: CERTIFICATE.cert });
      expect(await misnamed.channel.announce(replyOf(), misnamed.signal)).toEqual(failed(/^the connection failed/));
      expect(receiver.requests).toHaveLength(1);
    });

    it("MUST not be talked out of checking certificates by the environment", async () => {
      process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
      try {
        expect(await announceTo(answer(200), { tls: CERTIFICATE })).toEqual(failed(/^the connection failed/));
      } finally {
        delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
      }
    });

    it("MUST go to its address, whatever proxy the environment names", async () => {
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

    it("stops with its signal, wherever it is", async () => {
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

    it("leaves no listener on a signal that it has done with", async () => {
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

    it("sends many at once, each its own, and a long one whole", async () => {
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

    it("says the same at every attempt, but for what has to be new", async () => {
      await using receiver = await startReceiver([answer(500), answer(200)]);
      const { channel, clock, signal } = openFor(receiver);
      await channel.announce(replyOf(), signal);
      await clock.advance(60_000);
      await channel.announce(replyOf(), signal);
      const [first, second] = receiver.requests;
      expect(second?.body).toEqual(first?.body);
      expect(second?.headers["webhook-id"]).toBe(first?.headers["webhook-id"]);
    });

    it("takes no address but one of http(s)", () => {
      const parts = { post: createPost({ clock: createManualClock() }), clock: createManualClock() };
      for (const url of ["ftp://127.0.0.1/", "file:///etc/passwd", "unix:/run/x", "127.0.0.1"]) {
        expect(() => open(url, parts)).toThrow();
      }
    });

    it("MUST not tell its address or its secret when it fails", async () => {
      const told: string[] = [];
      for (const behaviour of [reset, answer(302, { location: "/in?of=ops" }), answer(500, {}, SECRET)]) {
        told.push(JSON.stringify(await announceTo(behaviour)));
      }
      expect(told.join()).not.toMatch(/127\.0\.0\.1|of=ops|a-secret/);
    });
  });
};
