import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { versionIn } from "./files.ts";
import { copyPackage, npmRegistryOf, publishToNpm } from "./npm.ts";
import { outputOf, TOKENS, type Token } from "./programs.ts";
import { publishToPypi, pypiAddress } from "./pypi.ts";

const TYPESCRIPT = "clients/typescript";
const PYTHON = "clients/python";

/** A package, the registry it goes to, and how. `publish` is called after the build; it returns false if the registry has the version already. */
interface Package {
  name: string;
  version: string;
  token: Token;
  registry: URL;
  publish: (registry: URL, scratch: string) => Promise<boolean>;
}

/**
 * Publishes the gateway and its clients, each if its token is set and its registry does not have its version. A dry run reports what would be published
 * and contacts no registry.
 */
export async function publish(root: string, isDry: boolean, print: (line: string) => void): Promise<void> {
  const packages = await packagesOf(root);
  const mayPublish = packages.filter(({ token }) => isSet(token));
  for (const { name, version, token, registry } of packages) {
    if (!isSet(token)) print(`${name} ${version} is not published to ${registry}: ${token} is not set.`);
    else if (isDry) print(`${name} ${version} would be published to ${registry}, if it is not there yet.`);
  }
  if (mayPublish.length === 0 && !isDry)
    throw new Error(`Set NPM_TOKEN to publish to ${packages[0]?.registry}, PYPI_TOKEN to publish to ${pypiAddress()}.`);
  await checkTree(root, packages);
  if (isDry) return;

  print("Building the packages.");
  await outputOf("npm", ["run", "prepack"], { cwd: root });
  await outputOf("npm", ["run", "build:clients"], { cwd: root });
  const scratch = await mkdtemp(join(tmpdir(), "publish-"));
  try {
    for (const { name, version, registry, publish } of mayPublish) {
      const isNew = await publish(registry, await mkdtemp(join(scratch, "package-")));
      print(`${name} ${version} ${isNew ? "is published to" : "is already at"} ${registry}.`);
    }
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** A text for the terminal: without tokens, and without control characters of a registry. */
export function printable(text: string): string {
  let result = text.replace(/[^\P{Cc}\n]/gu, "");
  for (const name of TOKENS) {
    const token = process.env[name];
    const encoded = Buffer.from(`__token__:${token}`).toString("base64");
    if (token) result = result.replaceAll(token, `$${name}`).replaceAll(encoded, `$${name}`);
  }
  return result;
}

function isSet(name: Token): boolean {
  const token = process.env[name] ?? "";
  if (!/^[!-~]*$/.test(token)) throw new Error(`${name} has characters that no token has, for example a space.`);
  return token !== "";
}

async function packagesOf(root: string): Promise<Package[]> {
  const read = (path: string) => readFileSync(join(root, path), "utf8");
  const gateway = JSON.parse(read("package.json"));
  const typescript = JSON.parse(read(`generated/${TYPESCRIPT}/package.json`));
  const python = Object.fromEntries(
    [...read(`generated/${PYTHON}/pyproject.toml`).matchAll(/^(name|version) = "(.*)"$/gm)].map((found) =>
      found.slice(1),
    ),
  );
  return [
    {
      name: gateway.name,
      version: gateway.version,
      token: "NPM_TOKEN",
      registry: await npmRegistryOf(gateway.name, root),
      publish: async (registry, scratch) => {
        await copyPackage(root, join(scratch, "package"));
        return publishToNpm(join(scratch, "package"), registry, scratch);
      },
    },
    {
      name: typescript.name,
      version: typescript.version,
      token: "NPM_TOKEN",
      registry: await npmRegistryOf(typescript.name, root),
      publish: (registry, scratch) => publishToNpm(resolve(root, "dist", TYPESCRIPT), registry, scratch),
    },
    {
      name: python.name,
      version: python.version,
      token: "PYPI_TOKEN",
      registry: pypiAddress(),
      publish: (registry) => publishToPypi(join(root, "dist", PYTHON), registry, join(root, "generated", PYTHON)),
    },
  ];
}

/** A release is published from its commit, as it is tagged. */
async function checkTree(root: string, packages: Package[]): Promise<void> {
  const version = versionIn(root);
  const git = (...args: string[]) => outputOf("git", args, { cwd: root });
  if ((await git("status", "--porcelain")) !== "")
    throw new Error("There are changes that are not committed. Commit them, or put them away, and run this again.");
  const tags = (await git("tag", "--points-at", "HEAD")).split("\n");
  if (!tags.includes(`v${version}`))
    throw new Error(
      `This commit is not tagged v${version}. Run \`git checkout v${version}\`, or tag it, and run this again.`,
    );
  for (const other of packages)
    if (other.version !== version)
      throw new Error(`${other.name} has the version ${other.version}, not ${version}. Run \`npm run generate\`.`);
}
