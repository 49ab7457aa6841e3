import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type ConnectionOptions, connect, DEFAULT_CIPHERS, type TLSSocket } from "node:tls";
import { describe, expect, onTestFinished, test } from "vitest";
import { listenHere } from "./listener.ts";

function pair(name: string) {
  const [cert, key] = ["cert", "key"].map((part) => readFileSync(`test/config/tls/${name}${part}.pem`, "utf8"));
  return { cert, key, hsts: true } as { cert: string; key: string; hsts: boolean };
}
const KINDS = [
  ["an RSA key", "rsa-", "ECDHE-RSA"],
  ["an elliptic key", "", "ECDHE-ECDSA"],
] as const;

/** A handshake with the listener; rejects if the listener refuses it. */
async function shake(port: number, options: ConnectionOptions): Promise<TLSSocket> {
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...options });
  onTestFinished(() => void socket.destroy());
  await once(socket, "secureConnect");
  return socket.on("error", () => {});
}
/** `@SECLEVEL=0` lets the client offer everything that OpenSSL supports. */
function only(suite: string): ConnectionOptions {
  return { maxVersion: "TLSv1.2", ciphers: `${suite}:@SECLEVEL=0` };
}

const WEAK = ["AES128-GCM-SHA256", "AES256-SHA", "AES128-SHA256", "DHE-RSA-AES128-GCM-SHA256", "AES128-CCM"];
const CBC = ["AES128-SHA", "AES256-SHA", "AES128-SHA256", "AES256-SHA384"];
const GOOD = ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"];

describe.each(KINDS)("a listener over TLS with %s", (_, name, exchange) => {
  test.each([...WEAK, ...CBC.map((suite) => `${exchange}-${suite}`)])(
    "refuses %s of TLS 1.2, also with a renewed certificate",
    async (suite) => {
      const listening = await listenHere(() => {}, { tls: pair(name) });
      await expect(shake(listening.port, only(suite))).rejects.toThrow(/handshake failure|no cipher/i);
      listening.setTls(pair(name));
      await expect(shake(listening.port, only(suite))).rejects.toThrow(/handshake failure|no cipher/i);
    },
  );

  test.each(GOOD.map((suite) => `${exchange}-${suite}`))("accepts %s of TLS 1.2", async (suite) => {
    const listening = await listenHere(() => {}, { tls: pair(name) });
    const socket = await shake(listening.port, only(suite));
    expect([socket.getProtocol(), socket.getCipher().name]).toEqual(["TLSv1.2", suite]);
  });

  test("accepts every suite of TLS 1.3 that Node has", async () => {
    const listening = await listenHere(() => {}, { tls: pair(name) });
    const suites = DEFAULT_CIPHERS.split(":").filter((suite) => suite.startsWith("TLS_"));
    expect(suites.length).toBeGreaterThan(1);
    for (const ciphers of suites) {
      const socket = await shake(listening.port, { ciphers });
      expect([socket.getProtocol(), socket.getCipher().name]).toEqual(["TLSv1.3", ciphers]);
    }
  });

  test("refuses TLS 1.1", async () => {
    const listening = await listenHere(() => {}, { tls: pair(name) });
    const old = { minVersion: "TLSv1.1", maxVersion: "TLSv1.1", ciphers: "ALL:@SECLEVEL=0" } as const;
    await expect(shake(listening.port, old)).rejects.toThrow(/protocol version/);
  });

  test("refuses a renegotiation, also with a renewed certificate", async () => {
    const listening = await listenHere(() => {}, { tls: pair(name) });
    const renegotiate = async () => {
      const socket = await shake(listening.port, { maxVersion: "TLSv1.2" });
      const failed = once(socket, "error").then(([error]) => error as Error);
      const outcome = new Promise<Error | null>((resolve) => {
        if (socket.renegotiate({ rejectUnauthorized: false }, resolve) === false) resolve(new Error("not begun"));
      });
      return await Promise.race([failed, outcome]);
    };
    expect(String(await renegotiate())).toMatch(/no renegotiation/);
    listening.setTls(pair(name));
    expect(String(await renegotiate())).toMatch(/no renegotiation/);
  });
});
