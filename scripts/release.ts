import { execFileSync, spawnSync } from "node:child_process";
import { parseArgs } from "node:util";
import { mayBreak, refusalOf, versionIn, writeVersion } from "./release/files.ts";
import { printable, publish } from "./release/publish.ts";

const HELP = `npm run release -- VERSION
npm run release -- publish [--dry-run]

Prepares a release: writes the version into the gateway, the contract and the clients, gives the changes so far their heading in
CHANGELOG.md, and takes today's contract as that of this release. It commits nothing.

VERSION is three numbers. It is a new major version, or before 1.0.0 a new minor one, where \`npm run contract:diff\` reports a breaking change.

publish builds the gateway and its clients at the release's tag, and publishes each whose token is set and whose registry does not have the
version yet: with NPM_TOKEN to the registry of npm's configuration, with PYPI_TOKEN to PYPI_URL (default: PyPI).
--dry-run reports what would be published where, and contacts no registry.
`;

function npm(...args: string[]): boolean {
  return spawnSync("npm", ["run", "--silent", ...args], { stdio: "inherit" }).status === 0;
}

function prepare(version: string): void {
  const present = versionIn(".");
  const refusal = refusalOf(version, present);
  if (refusal !== undefined) throw new Error(refusal);
  if (execFileSync("git", ["status", "--porcelain"], { encoding: "utf8" }) !== "")
    throw new Error("There are changes that are not committed. Commit them, or put them away, and run this again.");
  if (!npm("contract:diff") && !mayBreak(version, present))
    throw new Error(`The contract has breaking changes, as it says above: ${version} may not follow ${present}.`);

  const files = writeVersion(".", version, new Date().toISOString().slice(0, 10));
  if (!npm("generate") || !npm("contract:diff", "--", "--renew"))
    throw new Error("That failed, as it says above. `git restore .` takes the changes back.");
  console.log(`${[...files, "generated/", "specs/released/"].join(", ")} say ${version}.

Next:
  npm run check
  git commit --all --message "Release ${version}"
  git tag v${version}
  npm run release -- publish`);
}

async function publishAll(isDry: boolean): Promise<void> {
  try {
    await publish(".", isDry, (line) => console.log(printable(line)));
  } catch (error) {
    console.error(printable((error as Error).message));
    process.exitCode = 1;
  }
}

async function run(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { help: { type: "boolean", default: false }, "dry-run": { type: "boolean", default: false } },
  });
  const [word, ...rest] = positionals;
  // Without `--` in front of it, npm reads an option as its own.
  const isDry = values["dry-run"] || process.env.npm_config_dry_run === "true";
  if (values.help) console.log(HELP);
  else if (word === undefined) throw new Error("Give the version of the release, or `publish`.");
  else if (rest.length > 0) throw new Error(`There is one argument, not ${positionals.length}.`);
  else if (word === "publish") await publishAll(isDry);
  else if (isDry) throw new Error("Only `publish` has a dry run.");
  else prepare(word);
}

await run().catch((error: Error) => {
  console.error(`${error.message}\n\n${HELP}`);
  process.exitCode = 2;
});
