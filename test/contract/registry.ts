import { readdirSync, readFileSync, statSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

export interface Published {
  name: string;
  version: string;
  authorization: string | undefined;
  agent: string | undefined;
  /** npm: the package.json in the tarball, and its paths. PyPI: the form's fields without the file. */
  manifest: Record<string, unknown>;
  files: string[];
}

/** A registry of npm and PyPI's upload API on loopback. It refuses an existing version, as both do. */
export async function startRegistry({ temporary }: { temporary: string }) {
  const published: Published[] = [];
  const requests: string[] = [];
  /** The arguments of all programs and the files below `temporary`, at the time of an upload. */
  const seen: string[] = [];
  const answer = { status: 0, body: "" };
  const server = createServer(async (req, res) => {
    const body = await bytesOf(req);
    const [, name = ""] = decodeURIComponent(req.url ?? "").split(/^\/([^?]*)/);
    requests.push(`${req.method} /${name}`);
    const { authorization, "user-agent": agent } = req.headers;
    const send = (status: number, value: unknown, reason?: string) =>
      res.writeHead(status, reason ?? "", { "content-type": "application/json" }).end(JSON.stringify(value));
    if (req.method !== "GET") seen.push(...argumentsOfAll(), ...textsIn(temporary));
    if (answer.status > 0) return res.writeHead(answer.status, { location: "/elsewhere" }).end(answer.body);

    if (req.method === "POST") {
      const form = await new Response(body, {
        headers: { "content-type": `${req.headers["content-type"]}` },
      }).formData();
      const { content, ...manifest } = Object.fromEntries(form) as Record<string, string> & { content: unknown };
      const file = (content as File).name;
      if (published.some(({ files }) => files.includes(file))) return send(400, {}, `File already exists ('${file}').`);
      published.push({
        name: `${manifest.name}`,
        version: `${manifest.version}`,
        authorization,
        agent,
        manifest,
        files: [file],
      });
      return send(200, {});
    }
    if (req.method === "PUT") {
      const document = JSON.parse(body.toString());
      const [version = ""] = Object.keys(document.versions);
      if (published.some((one) => one.name === name && one.version === version)) return send(403, { error: "exists" });
      const [tarball] = Object.values(document._attachments) as { data: string }[];
      const files = filesOf(gunzipSync(Buffer.from(tarball?.data ?? "", "base64")));
      const manifest = JSON.parse(files.get("package/package.json") ?? "");
      published.push({ name, version, authorization, agent, manifest, files: [...files.keys()] });
      return send(201, {});
    }
    const versions = published.filter((one) => one.name === name).map(({ version }) => [version, { name, version }]);
    if (versions.length === 0) return send(404, { error: "Not found" });
    return send(200, { name, versions: Object.fromEntries(versions), "dist-tags": { latest: versions.at(-1)?.[0] } });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    published,
    requests,
    seen,
    /** Answers every later request with this. */
    answerWith: (status: number, body: string) => Object.assign(answer, { status, body }),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

async function bytesOf(req: IncomingMessage): Promise<Buffer> {
  return Buffer.concat(await req.toArray());
}

/** The files of a tar with short names. */
function filesOf(tar: Buffer): Map<string, string> {
  const files = new Map<string, string>();
  for (let at = 0; at + 512 <= tar.length && tar[at] !== 0; ) {
    const text = (from: number, length: number) =>
      tar.toString("utf8", at + from, at + from + length).split("\0")[0] ?? "";
    const size = Number.parseInt(text(124, 12), 8);
    const prefix = text(345, 155);
    const path = prefix === "" ? text(0, 100) : `${prefix}/${text(0, 100)}`;
    if (text(156, 1) === "0" || text(156, 1) === "") files.set(path, tar.toString("utf8", at + 512, at + 512 + size));
    at += 512 + Math.ceil(size / 512) * 512;
  }
  return files;
}

/** The command lines of all programs on this machine. Only Linux shows them as files. */
function argumentsOfAll(): string[] {
  const ids = process.platform === "linux" ? readdirSync("/proc").filter((name) => /^\d+$/.test(name)) : [];
  return ids.map((id) => {
    try {
      return readFileSync(`/proc/${id}/cmdline`, "utf8");
    } catch {
      return "";
    }
  });
}

/** The files in a folder, as `<mode> <text>` each. */
function textsIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => `${(statSync(path).mode & 0o777).toString(8)} ${readFileSync(path, "utf8")}`);
}
