import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The files that take longest, most of it by waiting. */
const LONGEST = [
  "test/crash/crash.slow.test.ts",
  "test/core/heartbeat-load.slow.test.ts",
  "test/faults/side-by-side.slow.test.ts",
  "test/faults/database.slow.test.ts",
  "test/faults/disk.slow.test.ts",
  "test/faults/repeats.slow.test.ts",
  "test/stores/upgrade/postgres.slow.test.ts",
  "test/stores/postgres.test.ts",
  "test/wire/ws/slow.test.ts",
  "test/wire/slow-readers.test.ts",
  "test/docs/operations.test.ts",
  "test/docs/agents.test.ts",
  "test/wire/rpc/errors.test.ts",
  "test/process/build.test.ts",
  "test/generate/output.test.ts",
  "test/process/secrets.test.ts",
  "test/backends/acp.test.ts",
  "test/wire/hooks/errors.test.ts",
  "test/process/blocked-output.test.ts",
  "test/stores/model.test.ts",
  "test/backends/model-gateway-faults.test.ts",
  "test/process/stop.test.ts",
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
