import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { outputOf, registryAddress } from "./programs.ts";

const PYPI = "https://upload.pypi.org/legacy/";
const UPLOAD_MS = 5 * 60_000;
const ANSWER_CHARACTERS = 4_000;

/** The upload API's address: `$PYPI_URL`, or that of PyPI. */
export function pypiAddress(): URL {
  return registryAddress(process.env.PYPI_URL || PYPI, "`PYPI_URL`");
}

/** Uploads the files in `folder` by PyPI's upload API; false if the registry has all of them already. `sources` has the package's build_backend.py. */
export async function publishToPypi(folder: string, url: URL, sources: string): Promise<boolean> {
  const names = (await readdir(folder)).sort();
  if (names.length === 0)
    throw new Error("The package for Python is not built: python3 is missing. Install it and run this again.");
  const metadata = await metadataOf(sources);
  let isNew = false;
  for (const name of names) isNew = (await upload(join(folder, name), name, metadata, url)) || isNew;
  return isNew;
}

/** The fields of the package's metadata, by the names that the upload API has for them. */
async function metadataOf(sources: string): Promise<[string, string][]> {
  const code = "import build_backend; print(build_backend.METADATA)";
  const text = await outputOf("python3", ["-B", "-c", code], { cwd: sources });
  const fields = [...text.matchAll(/^([\w-]+): (.*)$/gm)].map(([, key = "", value = ""]): [string, string] => [
    key.toLowerCase().replaceAll("-", "_"),
    value,
  ]);
  return [...fields, ["description", await readFile(join(sources, "README.md"), "utf8")]];
}

async function upload(path: string, name: string, metadata: [string, string][], url: URL): Promise<boolean> {
  const content = await readFile(path);
  const isWheel = name.endsWith(".whl");
  const form = new FormData();
  for (const [key, value] of [
    [":action", "file_upload"],
    ["protocol_version", "1"],
    ...metadata,
    ["filetype", isWheel ? "bdist_wheel" : "sdist"],
    ["pyversion", isWheel ? "py3" : "source"],
    ["sha256_digest", createHash("sha256").update(content).digest("hex")],
  ] as [string, string][])
    form.append(key, value);
  form.append("content", new Blob([content]), name);

  const answer = await post(url, form).catch((error: Error) => {
    const { cause } = error as { cause?: Error & { code?: string } };
    throw new Error(`${name}: ${url.host} did not answer: ${cause?.message || cause?.code || error.message}.`);
  });
  if (answer.ok) return true;
  // PyPI answers 400 for an existing file with other bytes; other registries answer 409.
  if (answer.status === 409 || (answer.status === 400 && /already exist/i.test(answer.text))) return false;
  throw new Error(`${url.host} refused ${name}: ${answer.status} ${answer.text}`);
}

/** Follows no redirect, because the token would be sent along. */
async function post(url: URL, body: FormData): Promise<{ ok: boolean; status: number; text: string }> {
  const authorization = `Basic ${Buffer.from(`__token__:${process.env.PYPI_TOKEN}`).toString("base64")}`;
  const signal = AbortSignal.timeout(UPLOAD_MS);
  const response = await fetch(url, { method: "POST", headers: { authorization }, body, redirect: "manual", signal });
  const decoder = new TextDecoder();
  let text = `${response.statusText} `;
  for await (const part of response.body ?? []) {
    text += decoder.decode(part, { stream: true });
    if (text.length > ANSWER_CHARACTERS) break;
  }
  const { ok, status } = response;
  return {
    ok,
    status,
    text: text
      .slice(0, ANSWER_CHARACTERS)
      .replace(/<[^>]*>/g, " ")
      .replace(/\s+/g, " ")
      .trim(),
  };
}
