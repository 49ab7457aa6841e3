import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The files with the version, and its form in each. The clients' versions are generated from the contract's. */
const PLACES: readonly [file: string, place: RegExp][] = [
  ["package.json", /^( {2}"version": ")[^"]+(?=")/m],
  ["package-lock.json", /^( {2}"version": ")[^"]+(?=")/m],
  ["package-lock.json", /^( {6}"version": ")[^"]+(?=")/m],
  ["specs/openapi.yaml", /^(info:\n(?: {2}.*\n)*? {2}version: )\S+/m],
  ["specs/pushes.yaml", /^(info:\n(?: {2}.*\n)*? {2}version: )\S+/m],
  ["specs/agent-http.yaml", /^(info:\n(?: {2}.*\n)*? {2}version: )\S+/m],
  ["specs/workflows.arazzo.yaml", /^(info:\n(?: {2}.*\n)*? {2}version: )\S+/m],
  ["specs/openrpc.json", /^( {2}"info": \{\n(?: {4}.*\n)*? {4}"version": ")[^"]+(?=")/m],
  ["docs/cli.md", /(answers, version )\S+/],
  ["docs/deploy/kubernetes/overlays/production/kustomization.yaml", /(newTag: )[^\s}]+/],
];
const CHANGELOG = "CHANGELOG.md";
const UNRELEASED = "## Unreleased\n";

/** The parts of a version that are compared. */
function partsOf(version: string): number[] | undefined {
  return /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$/.exec(version)?.slice(1).map(Number);
}

/** The reason why a version cannot follow another one; undefined if it can. */
export function refusalOf(next: string, present: string): string | undefined {
  const [wanted, had] = [partsOf(next), partsOf(present)];
  if (!wanted) return `${next} is no version: give three numbers, for example 1.2.0.`;
  const differs = wanted.findIndex((part, n) => part !== had?.[n]);
  if (differs < 0 || (wanted[differs] as number) < (had?.[differs] ?? 0))
    return `${next} does not follow ${present}, which is the version now.`;
  return undefined;
}

/** True if a release may remove something that clients use: a new major version, or a new minor one before 1.0.0. */
export function mayBreak(next: string, present: string): boolean {
  const [major, minor] = partsOf(next) ?? [];
  const [hadMajor, hadMinor] = partsOf(present) ?? [];
  return major !== hadMajor || (major === 0 && minor !== hadMinor);
}

export function versionIn(root: string): string {
  return JSON.parse(readFileSync(join(root, "package.json"), "utf8")).version;
}

/** Writes the version into every file that has it, and adds its heading to the changelog. Either all files are written or none. */
export function writeVersion(root: string, version: string, day: string): string[] {
  const texts = new Map<string, string>();
  const textOf = (file: string) => texts.get(file) ?? readFileSync(join(root, file), "utf8");
  for (const [file, place] of PLACES) {
    if (!place.test(textOf(file))) throw new Error(`${file} does not name a version where this script looks for it.`);
    texts.set(
      file,
      textOf(file).replace(place, (_, before: string) => before + version),
    );
  }
  const [before, changes] = textOf(CHANGELOG).split(UNRELEASED);
  const [own = ""] = (changes ?? "").split(/^## /m);
  if (own.trim() === "")
    throw new Error(`${CHANGELOG} has nothing below "${UNRELEASED.trim()}": tell what users can see.`);
  texts.set(CHANGELOG, `${before}${UNRELEASED}\n## ${version} - ${day}\n${changes}`);
  for (const [file, text] of texts) writeFileSync(join(root, file), text);
  return [...texts.keys()];
}
