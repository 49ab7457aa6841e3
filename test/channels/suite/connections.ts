import { expect, it } from "vitest";
import { type ChannelUnderTest, callsOn, failed, replyOf } from "../channel-under-test.ts";
import {
  answer,
  type Behaviour,
  CERTIFICATE,
  endless,
  hang,
  leave,
  OTHER_CERTIFICATE,
  reset,
  startReceiver,
  write,
} from "../receiver.ts";

export const connectionsTests = (underTest: ChannelUnderTest): void => {
  const { announceTo, openFor } = callsOn(underTest);

  it("does not wait long for a connection: a server that never says hello", async () => {
    await using silent = await startReceiver();
    const { channel, clock, signal } = openFor({ url: silent.url.replace("http:", "https:") });
    expect(await channel.announce(replyOf(), signal)).toEqual(
      failed("it cannot be reached: no connection to it in time"),
    );
    expect(clock.timers()).toBe(0);
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
      expect(await announceTo(behaviour)).toEqual(
        failed(
          /^it (broke the connection off|cannot be used: (what it answers is no HTTP|its answer has too long a head))$/,
        ),
      );
    });
  }

  it("may try again when nobody listens, and when nobody has the name", async () => {
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

  it("MUST send nothing to a server whose certificate it does not trust", async () => {
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

  it("MUST not be talked out of checking certificates by the environment", async () => {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
    try {
      expect(await announceTo(answer(200), { tls: CERTIFICATE })).toEqual(
        failed(/^it cannot be used: its certificate/),
      );
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
};
