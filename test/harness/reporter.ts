import { relative } from "node:path";
import { DefaultReporter, type TestCase, type TestModule } from "vitest/node";

/** A line per file, failures in full, and at the end the reasons of skipped tests and the names of failed ones. */
export default class Reporter extends DefaultReporter {
  constructor() {
    super({ summary: false });
  }

  override onTestRunEnd(...args: Parameters<DefaultReporter["onTestRunEnd"]>): void {
    super.onTestRunEnd(...args);
    this.#list(
      "Skipped",
      [...skippedByReason(args[0])].map(([reason, count]) => `${String(count).padStart(4)}  ${reason}`),
    );
    // A truncated log still has its last lines.
    this.#list("Failed", failures(args[0]));
  }

  #list(title: string, lines: readonly string[]): void {
    if (lines.length > 0) this.log([` ${title}`, ...lines.map((line) => `   ${line}`), ""].join("\n"));
  }
}

/** The file, the name and the first line of the error, for each failed test. */
function failures(modules: readonly TestModule[]): string[] {
  return modules.flatMap(({ moduleId, children }) =>
    [...children.allTests("failed")].map((test) => {
      const thrown = test.result().errors?.[0]?.message.split("\n")[0] ?? "";
      return `${relative(process.cwd(), moduleId)} > ${test.fullName}: ${thrown}`;
    }),
  );
}

function skippedByReason(modules: readonly TestModule[]): Map<string, number> {
  const reasons = new Map<string, number>();
  for (const module of modules) {
    for (const test of module.children.allTests("skipped")) {
      const reason = reasonOf(test);
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    }
  }
  return reasons;
}

/** The note of `context.skip(note)`, else the words in brackets at the end of a title, else the title. */
function reasonOf(test: TestCase): string {
  const result = test.result();
  if (result.state === "skipped" && result.note) return result.note;
  const titles = test.fullName.split(" > ").toReversed();
  return titles.map((title) => /\((?:not here: )?([^()]+)\)$/.exec(title)?.[1]).find(Boolean) ?? test.fullName;
}
