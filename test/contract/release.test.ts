import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { root } from "#test/harness/process.ts";
import { mayBreak, refusalOf, versionIn, writeVersion } from "../../scripts/release/files.ts";

/** A copy of the files with the version. */
function copy(): string {
  const folder = mkdtempSync(join(tmpdir(), "release-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const path of ["package.json", "package-lock.json", "CHANGELOG.md", "specs", "docs/deploy", "docs/cli.md"])
    cpSync(join(root, path), join(folder, path), { recursive: true });
  writeFileSync(
    join(folder, "CHANGELOG.md"),
    "# Changelog\n\n## Unreleased\n\n### Added\n\n- A thing.\n\n## 0.0.1 - 2026-01-01\n",
  );
  return folder;
}

describe("a release", () => {
  it("writes its version into the gateway and every part of the contract, and changes nothing else", () => {
    const folder = copy();
    const read = (path: string) => readFileSync(join(folder, path), "utf8");
    const before = new Map(
      ["package.json", "package-lock.json", "specs/openrpc.json"].map((path) => [path, read(path)]),
    );
    writeVersion(folder, "7.8.9", "2026-12-24");
    expect(versionIn(folder)).toBe("7.8.9");
    const lock = JSON.parse(read("package-lock.json"));
    expect([lock.version, lock.packages[""].version]).toEqual(["7.8.9", "7.8.9"]);
    for (const path of ["openapi.yaml", "pushes.yaml", "agent-http.yaml", "workflows.arazzo.yaml", "openrpc.json"])
      expect([path, parse(read(`specs/${path}`)).info.version]).toEqual([path, "7.8.9"]);
    const overlay = parse(read("docs/deploy/kubernetes/overlays/production/kustomization.yaml"));
    expect(overlay.images[0].newTag).toBe("7.8.9");
    for (const [path, text] of before) {
      const lines = read(path).split("\n");
      const changed = text.split("\n").filter((line, n) => line !== lines[n]);
      expect(changed.every((line) => /"version": /.test(line)) && changed.length <= 2, path).toBe(true);
    }
  });

  it("moves the changes under its heading, and leaves an empty section for the next", () => {
    const folder = copy();
    writeVersion(folder, "7.8.9", "2026-12-24");
    expect(readFileSync(join(folder, "CHANGELOG.md"), "utf8")).toBe(
      "# Changelog\n\n## Unreleased\n\n## 7.8.9 - 2026-12-24\n\n### Added\n\n- A thing.\n\n## 0.0.1 - 2026-01-01\n",
    );
  });

  it("is refused without changes in the changelog, and then writes nothing", () => {
    const folder = copy();
    writeVersion(folder, "7.8.9", "2026-12-24");
    expect(() => writeVersion(folder, "7.9.0", "2026-12-25")).toThrow('has nothing below "## Unreleased"');
    expect(versionIn(folder)).toBe("7.8.9");
  });

  it.each([
    ["1.2", "0.1.0", "1.2 is no version"],
    ["v1.2.0", "0.1.0", "v1.2.0 is no version"],
    ["01.2.0", "0.1.0", "01.2.0 is no version"],
    ["0.1.0", "0.1.0", "0.1.0 does not follow 0.1.0"],
    ["0.0.9", "0.1.0", "0.0.9 does not follow 0.1.0"],
    ["1.9.9", "2.0.0", "1.9.9 does not follow 2.0.0"],
  ])("%s is refused after %s", (next, present, words) => {
    expect(refusalOf(next, present)).toContain(words);
  });

  it.each([
    ["0.1.1", "0.1.0", false],
    ["0.2.0", "0.1.0", true],
    ["1.0.0", "0.9.0", true],
    ["1.3.0", "1.2.0", false],
    ["2.0.0", "1.2.0", true],
  ])("%s after %s may break clients: %s", (next, present, breaks) => {
    expect(refusalOf(next, present)).toBeUndefined();
    expect(mayBreak(next, present)).toBe(breaks);
  });
});
