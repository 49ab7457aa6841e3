import { execFileSync, spawnSync } from "node:child_process";
import { parseArgs } from "node:util";
import { mayBreak, refusalOf, versionIn, writeVersion } from "./release/files.ts";

const HELP = `npm run release -- VERSION

Prepares a release: writes the version into the gateway, the contract and the clients, gives the changes so far their heading in
CHANGELOG.md, and takes today's contract as that of this release. It commits nothing.

VERSION is three numbers. It is a new major version, or before 1.0.0 a new minor one, where \`npm run contract:diff\` tells of a break.
`;

const npm = (...args: string[]): boolean =>
  spawnSync("npm", ["run", "--silent", ...args], { stdio: "inherit" }).status === 0;

const run = (): void => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { help: { type: "boolean", default: false } },
  });
  const [version] = positionals;
  if (values.help) {
    console.log(HELP);
    return;
  }
  if (version === undefined) throw new Error("Which version?");
  const present = versionIn(".");
  const refusal = refusalOf(version, present);
  if (refusal !== undefined) throw new Error(refusal);
  if (execFileSync("git", ["status", "--porcelain"], { encoding: "utf8" }) !== "")
    throw new Error("There are changes that are not committed. Commit them, or put them away, and run this again.");
  if (!npm("contract:diff") && !mayBreak(version, present))
    throw new Error(`The contract breaks somebody, as it says above: ${version} may not follow ${present}.`);

  const files = writeVersion(".", version, new Date().toISOString().slice(0, 10));
  if (!npm("generate") || !npm("contract:diff", "--", "--renew"))
    throw new Error("That failed, as it says above. `git restore .` takes the changes back.");
  console.log(`${[...files, "generated/", "specs/released/"].join(", ")} say ${version}.

Next:
  npm run check
  git commit --all --message "Release ${version}"
  git tag v${version}`);
};

try {
  run();
} catch (error) {
  console.error(`${(error as Error).message}\n\n${HELP}`);
  process.exitCode = 2;
}
