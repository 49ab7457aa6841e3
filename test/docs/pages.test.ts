import { execFile } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import ts from "typescript";
import { describe, expect, it, onTestFinished } from "vitest";
import { root, startProcess } from "#test/harness/process.ts";
import manifest from "../../package.json" with { type: "json" };
import { at, blocksOf, paste } from "./blocks.ts";

/** The published form of the client's package, which another test installs. */
const CLIENT = join(root, "generated/clients/typescript/src/index.ts");
const run = promisify(execFile);

describe("README.md", () => {
  const blocks = blocksOf("README.md");
  const [start, call, answer, client, tests] = blocks as [Block, Block, Block, Block, Block];
  type Block = (typeof blocks)[number];

  it("starts the gateway with commands that exist", () => {
    expect(start.text).toMatch(/^export REST_API_KEY=[\w-]{16,}\nnpm ci && npm start\n$/);
    expect(call.text.split("\n")[0]).toBe(start.text.split("\n")[0]);
    expect(manifest.scripts.start).toMatch(/node (--[\w=-]+ )*dist\/main\.js$/);
    expect(tests.text.trim()).toBe("npm test");
  });

  it("shows a call with its real answer, and the same call with the client", async () => {
    const [, key = ""] = /REST_API_KEY=(\S+)/.exec(start.text) ?? [];
    const env = { REST_API_KEY: key };
    await using gateway = await startProcess({ env });
    const given = JSON.parse(await paste(at(gateway.url, call.text), env)) as object;
    const shown = JSON.parse(answer.text) as Record<string, unknown>;
    const { message_id, session_id, turn_id, ...rest } = shown;
    expect(given).toMatchObject(rest);
    expect(Object.keys(given)).toEqual(Object.keys(shown));

    const file = join(root, "dist", `readme-${process.pid}.mts`);
    writeFileSync(file, at(gateway.url, client.text).replace("@agent-gateway/client", CLIENT));
    try {
      const { stdout } = await run(process.execPath, ["--import", "tsx", file], { env: { ...process.env, ...env } });
      expect(stdout.split("\n")[0]).toBe("Hello");
      expect(stdout).toContain("turn.completed");
    } finally {
      rmSync(file);
    }
  });
});

describe("the samples for programs in README.md", () => {
  it("compile against the built types", { timeout: 180_000 }, () => {
    const samples = blocksOf("README.md").filter(({ language }) => ["js", "ts"].includes(language));
    expect(samples.length).toBeGreaterThan(0);
    const files = samples.map(({ text }, n) => {
      const file = join(root, "dist", `sample-${process.pid}-${n}.ts`);
      writeFileSync(file, text.replace("@agent-gateway/client", CLIENT));
      return file;
    });
    onTestFinished(() => {
      for (const file of files) rmSync(file);
    });
    const program = ts.createProgram(files, {
      strict: true,
      allowImportingTsExtensions: true,
      noEmit: true,
      skipLibCheck: true,
      target: ts.ScriptTarget.ES2023,
      lib: ["lib.es2023.d.ts", "lib.esnext.disposable.d.ts"],
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      types: ["node"],
      typeRoots: [join(root, "node_modules/@types")],
    });
    const faults = ts.getPreEmitDiagnostics(program).map(({ file, messageText }) => {
      return `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, "\n")}`;
    });
    expect(faults).toEqual([]);
  });
});

describe("docs/quickstart.md", () => {
  it("works from the first block to the last", async () => {
    const blocks = blocksOf("docs/quickstart.md");
    const config = blocks.find(({ name }) => name === "gateway.json5");
    const shell = blocks.filter(({ language }) => language === "sh").map(({ text }) => text);
    const [skill, secrets, start, load, ...calls] = shell as [string, string, string, string, ...string[]];
    expect(start).toMatch(/^unset [\w ]+\nnpm start\n$/);

    await using folder = await startProcess({ config: "{ agents: { main: { backend: 'echo' } } }" });
    for (const text of [skill, secrets]) await paste(text, {}, folder.folder);
    const agent = blocks.find(({ name }) => name === "agent.mjs");
    writeFileSync(join(folder.folder, "agent.mjs"), agent?.text ?? "");
    await using gateway = await startProcess({ config: config?.text ?? "", cwd: folder.folder });

    const outputs: string[] = [];
    for (const text of calls) outputs.push(await paste(at(gateway.url, `${load}${text}`), {}, folder.folder));
    const [ready, sent, own, streamed, skills, idempotent, minted, called, metrics] = outputs as [
      string,
      string,
      string,
      string,
      string,
      string,
      string,
      string,
      string,
    ];
    expect(outputs).toHaveLength(9);
    expect(JSON.parse(ready)).toMatchObject({ ready: true });
    expect(JSON.parse(sent)).toMatchObject({
      session_id: "agent:main:rest:ada",
      reply: "What changed since yesterday?",
    });
    expect(JSON.parse(own)).toMatchObject({ reply: "You wrote 4 words.", status: "completed" });
    expect(streamed.match(/^event: message\.delta$/gm)).toHaveLength(4);
    expect(skills).toContain('"skill_id":"summarise"');
    expect(skills).toContain('"reply":"/summarise {\\"lines\\":3}"');
    expect(idempotent).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(JSON.parse(minted)).toMatchObject({ name: "another program", source: "console" });
    expect(called).toContain('"status":"delivered"');
    expect(called).toContain('"reply":"Hello"');
    expect(called).toContain('"sessions":[');
    expect(metrics).toMatch(/^gateway_turns_total\{agent="main",(outcome|status)="completed"\} 5$/m);
  });
});
