import { DefaultReporter, type TestCase, type TestModule } from "vitest/node";

/** A line per file, failures in full, and at the end how many tests were skipped for which reason. */
export default class Reporter extends DefaultReporter {
  constructor() {
    super({ summary: false });
  }

  override onTestRunEnd(...args: Parameters<DefaultReporter["onTestRunEnd"]>): void {
    super.onTestRunEnd(...args);
    const reasons = skippedByReason(args[0]);
    if (reasons.size === 0) return;
    this.log(" Skipped");
    for (const [reason, count] of reasons) this.log(`   ${String(count).padStart(4)}  ${reason}`);
    this.log("");
  }
}

const skippedByReason = (modules: readonly TestModule[]): Map<string, number> => {
  const reasons = new Map<string, number>();
  for (const module of modules) {
    for (const test of module.children.allTests("skipped")) {
      const reason = reasonOf(test);
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    }
  }
  return reasons;
};

/** The note of `context.skip(note)`, else the words in brackets at the end of a title, else the title. */
const reasonOf = (test: TestCase): string => {
  const result = test.result();
  if (result.state === "skipped" && result.note) return result.note;
  const titles = test.fullName.split(" > ").toReversed();
  return titles.map((title) => /\((?:not here: )?([^()]+)\)$/.exec(title)?.[1]).find(Boolean) ?? test.fullName;
};
