import { BaseSequencer, type TestSpecification } from "vitest/node";

/** What takes longest, most of it by waiting. */
const LONGEST = [
  "test/wire/ws/slow.test.ts",
  "test/crash/crash.test.ts",
  "test/faults/side-by-side.test.ts",
  "test/stores/postgres.test.ts",
  "test/wire/slow-readers.test.ts",
  "test/process/npm-start.test.ts",
  "test/faults/repeats.test.ts",
  "test/generate/output.test.ts",
  "test/backends/acp.test.ts",
  "test/faults/database.test.ts",
  "test/docs/operations.test.ts",
  "test/stores/sqlite.test.ts",
  "test/faults/clock.test.ts",
  "test/wire/rpc/errors.test.ts",
  "test/faults/disk.test.ts",
  "test/stores/upgrade/postgres.test.ts",
  "test/stores/postgres-shared.test.ts",
  "test/stores/postgres-faults.test.ts",
  "test/backends/programs-gateway.test.ts",
  "test/stores/retention.test.ts",
  "test/process/stop.test.ts",
  "test/observe/blocked-reader.test.ts",
  "test/backends/command-processes.test.ts",
];

/** Begins with what takes longest, so that nothing else waits for it in the end. */
export class LongestFirst extends BaseSequencer {
  override async sort(specs: TestSpecification[]): Promise<TestSpecification[]> {
    const usual = await super.sort(specs);
    // A project's files stay together: a process that files share ends where one of another project comes next.
    const projects = [...new Set(usual.map(({ project }) => project.name))];
    return projects.flatMap((name) =>
      usual.filter(({ project }) => project.name === name).toSorted((a, b) => placeOf(a) - placeOf(b)),
    );
  }
}

const placeOf = ({ moduleId }: TestSpecification): number => {
  const place = LONGEST.findIndex((path) => moduleId.endsWith(path));
  return place < 0 ? LONGEST.length : place;
};
