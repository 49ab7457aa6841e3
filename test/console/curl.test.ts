import { spawn, spawnSync } from "node:child_process";
import { mkdir, mkdtemp, open, readdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chatCommand, curlOf } from "#console/lib/curl.ts";
import { curlNote, curlOfDelivery } from "#console/lib/requests.ts";
import { commandOf } from "#console/lib/shell.ts";
import { curlOfHook } from "#console/lib/webhook-requests.ts";
import type { Delivery } from "#generated/clients/typescript/src/rest.ts";
import type { SignatureScheme } from "#generated/clients/typescript/src/webhooks.ts";

/**
 * The arguments with which each shell reads a script without the user's settings. With `-i` bash reads it line by line, and has the history that `!`
 * reads.
 */
const SHELLS: readonly (readonly [name: string, program: string, args: readonly string[]])[] = [
  ["sh", "sh", []],
  ["bash", "bash", ["--norc", "--noprofile"]],
  ["bash with a history", "bash", ["--norc", "--noprofile", "-i"]],
  ["zsh", "zsh", ["-f"]],
  ["fish", "fish", ["--no-config"]],
];
function isThere(program: string): boolean {
  return spawnSync(program, ["-c", "exit 0"]).status === 0;
}

/** Accepts one request per connection, and stores its bytes. */
async function startRawServer() {
  const requests: string[] = [];
  const server = createServer((socket) => {
    let seen = "";
    socket.setEncoding("latin1").on("error", () => {});
    socket.on("data", (part: string) => {
      seen += part;
      const head = seen.indexOf("\r\n\r\n");
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(seen)?.[1] ?? 0);
      if (head < 0 || seen.length < head + 4 + length) return;
      requests.push(seen);
      socket.removeAllListeners("data").resume();
      socket.end("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return { requests, url: `http://127.0.0.1:${port}`, stop: () => server.close() };
}

let server: Awaited<ReturnType<typeof startRawServer>>;
let home: string;
beforeAll(async () => {
  server = await startRawServer();
  home = await mkdtemp(join(tmpdir(), "curl-"));
});
afterAll(async () => {
  server.stop();
  await rm(home, { recursive: true });
});

/**
 * Runs commands as if they were pasted, one after another, in an empty folder. Returns the files that they created, their output, and the requests.
 */
async function paste([, program, args]: (typeof SHELLS)[number], commands: readonly string[]) {
  const folder = await mkdtemp(join(home, "paste-"));
  const [script, empty] = [join(folder, "script"), join(folder, "empty")];
  await mkdir(empty);
  await writeFile(script, `${commands.join("\n")}\n`);
  server.requests.length = 0;
  const env = {
    PATH: process.env.PATH,
    HOME: join(folder, "user"),
    LC_ALL: "C.UTF-8",
    TERM: "dumb",
    HISTFILE: "/dev/null",
    REST_API_KEY: "rest",
    RPC_TOKEN: "rpc",
    WEBHOOK_TOKEN: "hook",
    GITHUB_WEBHOOK_SECRET: "g",
    STRIPE_WEBHOOK_SECRET: "s",
    SLACK_SIGNING_SECRET: "l",
    WEBHOOK_SECRET: "d2g=",
  };
  const input = await open(script);
  const { stdout: out, stderr: faults } = spawn(program, args, { cwd: empty, env, stdio: [input.fd, "pipe", "pipe"] });
  const [stdout, stderr] = await Promise.all([text(out as Readable), text(faults as Readable)]);
  await input.close();
  return { files: await readdir(empty), requests: [...server.requests], stdout, stderr };
}

type Sent = { line: string; headers: Record<string, string>; body: string };
function parse(raw: string): Sent {
  const end = raw.indexOf("\r\n\r\n");
  const [line = "", ...lines] = raw.slice(0, end).split("\r\n");
  const headers = lines.map((one) => /^([^:]*): ?(.*)$/s.exec(one)?.slice(1) as [string, string]);
  return { line, headers: Object.fromEntries(headers), body: raw.slice(end + 4) };
}

const ATTACKS = [
  "$A$(touch pwned)",
  "`touch pwned`",
  "';touch pwned;'",
  '";touch pwned;"',
  "\\';touch pwned;'",
  "\\\\",
  "\\",
  "'",
  "!!",
  "!touch",
  "$HOME",
  "~",
  "*",
  "@/etc/hostname",
  "@-",
  "<",
  "> pwned",
  "-o pwned",
  "--next",
  "%s%n",
  "{a,b}",
  "[1-3]",
  "#x",
  ";touch pwned",
  "&touch pwned&",
  "|touch pwned",
  "(touch pwned)",
  "\\n",
  "\\047",
  "\\x27",
  "=ls",
  "\x1b[201~",
  "\t",
  "\x7f",
  "\xff\xfe",
  "\xe2\x80\xae",
  "\xc3\xa9",
  "\xf0\x9f\x98\x80",
  "\xef\xb7\x90",
  "\xee\x80\x80",
];
const PRINTABLE = [..."\\\\\\'''\"$`!#()*;&|<>?[]{}~%^= abn0é😀"];
function isAscii(one: string): boolean {
  return /^[ -~]*$/.test(one);
}
const FREE = ["\n", "\r", "\0", "\0touch pwned\n", "\ntouch pwned\n", "\x03\ntouch pwned\n", "EOF\n", "\x04", "\x15"];

function textOf(pieces: readonly string[], last: number, skipped = /[\0\r\n]/): fc.Arbitrary<string> {
  return fc
    .array(
      fc.oneof(
        fc.constantFrom(...pieces),
        fc.integer({ min: 0, max: last }).map((code) => String.fromCharCode(code)),
        fc.string({ unit: "grapheme-ascii" }),
      ),
      { maxLength: 8 },
    )
    .map((parts) => parts.join("").replaceAll(new RegExp(skipped, "g"), ""));
}

const TOKEN = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz";
function token(more: string) {
  return fc.string({ unit: fc.constantFrom(...TOKEN, ...more), minLength: 1, maxLength: 12 });
}
const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "`touch$IFS%pwned`", "-o", "$(x)"];
/** Headers that a command omits, and the one that it adds. */
const OWN = /^(host|connection|keep-alive|te|trailer|upgrade|expect|authorization|content-length|transfer-encoding)$/;

/** The text as a server reads it in a header: a space of another kind at its end is part of it. */
function asValue(text: string): string {
  return text.replaceAll(/^[ \t\v\f]+|[ \t\v\f]+$/g, "");
}

/** A request in the form of the flight recorder: a character for each byte in its path and headers. */
const delivery: fc.Arbitrary<Delivery> = fc
  .record({
    method: fc.oneof(fc.constantFrom(...METHODS), token("ABCDEFG")),
    path: fc.oneof(
      { weight: 4, arbitrary: textOf(ATTACKS, 0xff, /[\0-\x20]/).map((text) => `/${text}`) },
      {
        weight: 1,
        arbitrary: fc.constantFrom("*", "@evil.test/", ".evil.test/", "/../x", "/a/./b", "//x", "/#", "/?"),
      },
    ),
    surface: fc.constantFrom("rest", "rpc", "hooks"),
    headers: fc.dictionary(
      fc.oneof(
        token("").filter((name) => !OWN.test(name)),
        fc.constantFrom("content-type", "user-agent", "accept", "x-note"),
      ),
      textOf(ATTACKS, 0xff).map(asValue),
      { maxKeys: 5, noNullPrototype: true },
    ),
    bytes: fc.oneof(
      textOf([...ATTACKS, ...FREE], 0xff, /(?!)/),
      fc.json().map((json) => Buffer.from(json).toString("latin1")),
      textOf([...ATTACKS, ...FREE], 0xff, /(?!)/).map((one) => one.repeat(2_000).slice(0, 40_000)),
    ),
  })
  .map(({ bytes: text, ...rest }) => {
    const bytes = Buffer.from(text, "latin1");
    const isUtf8 = bytes.equals(Buffer.from(bytes.toString("utf8")));
    const body = bytes.toString(isUtf8 ? "utf8" : "base64");
    return { ...rest, body, body_encoding: isUtf8 ? "utf-8" : "base64", bytes: bytes.length } as unknown as Delivery;
  });

const SECRETS = { rest: "Bearer rest", rpc: "Bearer rpc", hooks: "Bearer hook", schedule: "Bearer rest" };
function asSent({ method, path, headers, body, body_encoding, surface }: Delivery): Sent {
  const bytes = Buffer.from(body ?? "", body_encoding === "base64" ? "base64" : "utf8");
  const length: Record<string, string> = bytes.length > 0 ? { "Content-Length": String(bytes.length) } : {};
  return {
    line: `${method} ${path} HTTP/1.1`,
    headers: { Host: new URL(server.url).host, authorization: SECRETS[surface], ...headers, ...length },
    body: bytes.toString("latin1"),
  };
}

describe.each(SHELLS)("a copied command in %s", (...shell) => {
  const [, program] = shell;
  const missing = isThere(program) ? "" : ` (${program} is not installed)`;

  it.skipIf(missing)(`runs nothing of a request, and sends it unchanged to the byte${missing}`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(delivery, { minLength: 12, maxLength: 16 }), async (deliveries) => {
        const commands = deliveries.map((one) => curlOfDelivery(one, server.url));
        const { files, requests, stderr } = await paste(shell, commands);
        expect(files).toEqual([]);
        for (const [n, one] of deliveries.entries())
          expect(parse(requests[n] ?? stderr), commands[n]).toEqual(asSent(one));
        expect(requests).toHaveLength(deliveries.length);
      }),
      { numRuns: 2, endOnFailure: true },
    );
  });

  it.skipIf(missing)(`is not too long for an argument, however large the request is${missing}`, async () => {
    // All headers of a request have at most 16 KiB.
    const quotes = Buffer.alloc(32_000, "'a");
    const large: [Record<string, string>, Buffer][] = [
      [{ "x-note": "\xe9" }, Buffer.alloc(60_000, "\xff\0'a%", "latin1")],
      [{ "x-note": "'a".repeat(7_500) }, quotes],
      [{ "x-note": `${"'a".repeat(7_500)}\xff` }, quotes],
      [{ "x-note": "a\xff".repeat(7_500) }, quotes.subarray(0, 16_000)],
      [Object.fromEntries(Array.from({ length: 900 }, (_, n) => [`x${n}`, "a\xff'"])), quotes.subarray(0, 16_000)],
    ];
    const deliveries = large.map(([headers, bytes]) => ({
      method: "POST",
      path: "/hooks",
      surface: "hooks",
      headers,
      bytes: bytes.length,
      body: bytes.toString("base64"),
      body_encoding: "base64",
    })) as unknown as Delivery[];
    const commands = deliveries.map((one) => curlOfDelivery(one, server.url));
    const { requests, stderr } = await paste(shell, commands);
    for (const [n, one] of deliveries.entries()) {
      const isSame = isDeepStrictEqual(parse(requests[n] ?? ""), asSent(one));
      expect([n, isSame], stderr.slice(-1_000)).toEqual([n, true]);
    }
  });

  it.skipIf(missing)(`signs a body, and runs nothing of it${missing}`, async () => {
    const schemes = ["github", "stripe", "slack", "standard-webhooks"] as const satisfies SignatureScheme[];
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...schemes),
        textOf(ATTACKS, 0xff).map(asValue),
        fc.json(),
        async (verify, note, json) => {
          const body = JSON.stringify([note, json]);
          const headers = { "x-note": note };
          const command = curlOfHook({ origin: server.url, path: "/hooks/x", verify, headers, body });
          const { files, requests, stderr } = await paste(shell, [command]);
          expect(files).toEqual([]);
          const sent = parse(requests[0] ?? stderr);
          expect([sent.line, sent.body], command).toEqual([
            "POST /hooks/x HTTP/1.1",
            Buffer.from(body).toString("latin1"),
          ]);
          expect(sent.headers["x-note"]).toBe(note);
        },
      ),
      { numRuns: 5, endOnFailure: true },
    );
  });

  it.skipIf(missing)(`reads printable text as one word${missing}`, async () => {
    const texts = [...fc.sample(fc.string({ unit: fc.constantFrom(...PRINTABLE) }), 100), ...ATTACKS.filter(isAscii)];
    const words = texts.map((one) => commandOf([Buffer.from(one)], undefined, (word) => `printf '%s\\n' ${word(one)}`));
    const { files, stdout } = await paste(shell, words);
    expect([files, stdout.split("\n").slice(0, -1)]).toEqual([[], texts]);
  });
});

describe("a command", () => {
  it("has a variable for the secret, and leaves printable text unchanged", () => {
    const headers = { "x-note": "it's `here`", "x-empty": "" };
    const command = curlOf({
      method: "POST",
      origin: "http://127.0.0.1:1",
      path: "/hooks/wake",
      secret: "WEBHOOK_TOKEN",
      headers,
      body: '{"text":"a\\nb"}',
    });
    expect(command.split(" \\\n  ")).toEqual([
      "curl 'http://127.0.0.1:1/hooks/wake'",
      '-H "authorization: Bearer $WEBHOOK_TOKEN"',
      `-H 'x-note: it'"'"'s \`here\`'`,
      "-H 'x-empty;'",
      `--data-raw '{"text":"a\\nb"}'`,
    ]);
  });

  it("is one line of printable text for each argument, whatever was sent", () => {
    const command = curlOf({
      method: "PUT",
      origin: "http://gw",
      path: "/a b",
      headers: { "x-note": "\x1b[201~\u202e" },
      body: "first\n\x1b[201~\ntouch pwned\n",
    });
    expect(command.replaceAll(" \\\n  ", " ")).toMatch(/^[ -~]*$/);
    expect(command).toMatch(/^printf 'first\\n\\033\[201~\\ntouch pwned\\n' \| sh -c 'curl /);
  });

  it("with a key has the key in place of the variable", () => {
    expect(chatCommand("http://gw", {}, "gw_$A")).toContain(`-H 'authorization: Bearer gw_$A'`);
  });

  it.each([
    ["a signature", { timeline: [{ name: "signature.accepted" }] }, "Signatures are not stored"],
    ["a body that was not recorded", { timeline: [], body: null, bytes: 7 }, "The body was not stored"],
    [
      "a body that was not read",
      { timeline: [], headers: { "content-length": "7" }, body: null, bytes: 0 },
      "The body was not stored",
    ],
    [
      "a body of unknown length that was not read",
      { timeline: [], headers: { "transfer-encoding": "chunked" }, body: null, bytes: 0 },
      "The body was not stored",
    ],
    [
      "a body that was not recorded, and a signature",
      { timeline: [{ name: "signature.refused" }], headers: { "content-length": "7" }, body: null, bytes: 0 },
      "instead. The body was not stored",
    ],
    ["a hidden secret", { timeline: [], body: '{"token":"[hidden]"}', bytes: 20 }, "Replace [hidden]"],
  ])("has a note about %s", (_, given, words) => {
    expect(curlNote({ headers: {}, ...given } as unknown as Delivery)).toContain(words);
    for (const none of [
      { body: "{}", bytes: 2, headers: { "content-length": "2" } },
      { body: null, bytes: 0, headers: { "content-length": "0" } },
    ])
      expect(curlNote({ timeline: [], ...none } as unknown as Delivery)).toBeUndefined();
  });
});
