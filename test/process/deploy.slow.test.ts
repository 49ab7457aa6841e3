import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { validate } from "dockerfile-utils";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { loadConfig } from "#config/load.ts";
import { BUILT } from "#gateway/gateway.ts";
import { GatewayProcess, root, runProcess } from "#test/harness/process.ts";
import manifest from "../../package.json" with { type: "json" };
import { canEnter, DOCKERFILE, layOutImage, readImage } from "./image.ts";

const DEPLOY = join(root, "docs/deploy");
const OVERLAY = join(DEPLOY, "kubernetes/overlays/production");
function read(path: string): string {
  return readFileSync(join(DEPLOY, path), "utf8");
}
const secrets = {
  REST_API_KEY: "rest-key-of-the-image",
  RPC_TOKEN: "rpc-token-of-the-image",
  WEBHOOK_TOKEN: "webhook-token-of-the-image",
  CONSOLE_TOKEN: "console-token-of-the-image",
};
const env = { ...secrets, DATABASE_URL: "postgres://gateway:password@postgres:5432/gateway", NODE_ENV: "production" };
function has(command: string): boolean {
  return spawnSync(command, ["--version"], { stdio: "ignore" }).error === undefined;
}

describe("the configurations of docs/deploy", () => {
  it.each(["gateway.json5", "gateway.postgres.json5", "kubernetes/overlays/production/gateway.json5"])(
    "%s is accepted without a warning, for other machines and in production",
    async (file) => {
      const { warnings } = await loadConfig({ file: join(DEPLOY, file), env, host: "0.0.0.0", built: BUILT });
      expect(warnings).toEqual([]);
    },
  );

  it("is the same for Kubernetes as for two gateways of Compose", () => {
    expect(read("kubernetes/overlays/production/gateway.json5")).toBe(read("gateway.postgres.json5"));
  });
});

describe("the Dockerfile", () => {
  it("passes a linter without a finding", () => {
    expect(validate(read("Dockerfile")).map(({ message, range }) => `${range.start.line + 1}: ${message}`)).toEqual([]);
  });

  it("copies only files that the context has", () => {
    const copied = [...read("Dockerfile").matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, names = ""]) =>
      names.split(" "),
    );
    const kept = read("Dockerfile.dockerignore").split("\n");
    for (const name of copied.filter((name) => name !== ".")) {
      expect(existsSync(join(root, name)), name).toBe(true);
      expect(kept, name).toContain(`!${name}`);
    }
  });

  it("runs as a user without privileges, with a health check of the gateway itself", () => {
    const { user, health, volume } = readImage();
    expect(user).toBe("1000:1000");
    expect(volume).toBe("/data");
    expect(health.slice(0, 2)).toEqual(["agent-gateway", "health"]);
  });
});

describe.skipIf(!canEnter())("the image, run as a process (needs root)", () => {
  const image = canEnter() ? layOutImage(join(DEPLOY, "gateway.json5")) : undefined;
  afterAll(() => image?.[Symbol.dispose]());
  const inside = (command: readonly string[], more: Record<string, string> = {}) => ({
    cwd: root,
    env: { ...image?.env, ...secrets, ...more },
    command: () => image?.enter(command) as string[],
  });

  it("MUST serve, store its data in /data, report its health, and stop on a signal, with everything else read-only", async () => {
    const { start, health } = readImage();
    await using gateway = new GatewayProcess(inside(start, { GATEWAY_PORT: "0" }));
    await gateway.logged("listening");
    const url = `http://127.0.0.1:${new URL(gateway.url).port}`;
    const sent = await fetch(`${url}/api/v1/chat/send`, {
      method: "POST",
      headers: { authorization: `Bearer ${secrets.REST_API_KEY}`, "content-type": "application/json" },
      body: JSON.stringify({ message: "Hello" }),
    });
    expect(await sent.json()).toMatchObject({ reply: "Hello", status: "completed" });
    expect(readdirSync(image?.data as string)).toContain("gateway.db");
    for (const path of ["/docs", "/console"]) expect((await fetch(url + path)).status).toBe(200);

    const status = readFileSync(`/proc/${gateway.pid}/status`, "utf8");
    expect(status).toMatch(/^Uid:\s+1000\s+1000\s/m);
    const written = await runProcess(inside(["sh", "-c", "touch /app/file; touch /etc/file; touch /data/file"]));
    expect(written.err.match(/Read-only file system/g)).toHaveLength(2);
    const asked = await runProcess(inside([...health.slice(0, -1), url]));
    expect({ code: asked.code, out: asked.out }).toEqual({ code: 0, out: "It is ready." });

    gateway.kill("SIGTERM");
    expect(await gateway.exited).toEqual({ code: 0, signal: null });
  });

  it("refuses to start without its secrets, with their names", async () => {
    const { code, err } = await runProcess({
      ...inside(readImage().start),
      env: { ...image?.env },
    });
    expect(code).not.toBe(0);
    expect(err).toContain("REST_API_KEY");
  });
});

describe.each(["compose.yaml", "compose.postgres.yaml"])("%s", (file) => {
  type Service = { read_only?: boolean; volumes?: string[]; build?: { context: string; dockerfile: string } };
  const { services, volumes } = parse(read(file), { merge: true }) as {
    services: Record<string, Service>;
    volumes: object;
  };
  const mounts = Object.values(services).flatMap(({ volumes = [] }) => volumes.map((text) => text.split(":")));

  it("mounts files that exist, and volumes that it declares", () => {
    for (const [from = ""] of mounts)
      expect(from.startsWith("./") ? existsSync(join(DEPLOY, from)) : from in volumes, from).toBe(true);
  });

  it("builds the image, runs it with a read-only root, and mounts its configuration at the right path", () => {
    const gateways = Object.entries(services).filter(([name]) => name.startsWith("gateway"));
    expect(gateways.length).toBe(file === "compose.yaml" ? 1 : 2);
    for (const [, { read_only, build, volumes = [] }] of gateways) {
      expect(read_only).toBe(true);
      expect(existsSync(join(DEPLOY, build?.context ?? "", build?.dockerfile ?? ""))).toBe(true);
      expect(volumes.some((text) => text.includes(`:${readImage().env.GATEWAY_CONFIG}:ro`))).toBe(true);
    }
  });

  it("requires each variable that docs/deploying.md creates", () => {
    const asked = new Set([...read(file).matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name as string));
    const page = readFileSync(join(root, "docs/deploying.md"), "utf8");
    for (const name of asked) expect(page).toContain(`${name}=`);
  });
});

describe.skipIf(!has("kubectl"))("the Kubernetes overlay (needs kubectl)", () => {
  it("renders, with secrets only in the Secret, and mounts its configuration at the right path", () => {
    const { stdout, status } = spawnSync("kubectl", ["kustomize", OVERLAY], { encoding: "utf8" });
    expect(status).toBe(0);
    const made = stdout.split(/^---$/m).map((text) => parse(text));
    expect(made.map(({ kind }) => kind).sort()).toEqual(
      ["ConfigMap", "Deployment", "Ingress", "PodDisruptionBudget", "Secret", "Service"].sort(),
    );
    expect(stdout.match(/change-this/g)).toBeNull();
    const { spec } = made.find(({ kind }) => kind === "Deployment").spec.template;
    const [container] = spec.containers;
    const config = container.volumeMounts.find(({ name }: { name: string }) => name === "config");
    expect(config.mountPath).toBe(dirname(readImage().env.GATEWAY_CONFIG as string));
    expect(container.securityContext.readOnlyRootFilesystem).toBe(true);
    expect(spec.securityContext.runAsUser).toBe(1000);
    expect(container.image).toBe(`registry.example.com/agent-gateway:${manifest.version}`);
  });
});

describe.skipIf(!has("systemd-analyze"))("the systemd unit (needs systemd-analyze)", () => {
  it("is valid, and has an exposure below 2", () => {
    const folder = mkdtempSync(join(tmpdir(), "unit-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const unit = join(folder, "agent-gateway.service");
    writeFileSync(unit, read("agent-gateway.service").replace("/usr/bin/agent-gateway", process.execPath));
    const verified = spawnSync("systemd-analyze", ["verify", unit], { encoding: "utf8" });
    expect([verified.status, verified.stderr]).toEqual([0, ""]);
    const { stdout } = spawnSync("systemd-analyze", ["security", "--offline=true", unit], { encoding: "utf8" });
    expect(Number(/exposure level[^:]*: ([\d.]+)/.exec(stdout)?.[1])).toBeLessThan(2);
  });
});

it("docs/deploying.md names the Dockerfile", () => {
  expect(readFileSync(join(root, "docs/deploying.md"), "utf8")).toContain(`-f ${DOCKERFILE}`);
});
