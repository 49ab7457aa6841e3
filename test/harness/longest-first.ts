import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The files that take longest, most of it by waiting. */
const LONGEST = [
  "test/crash/crash.slow.test.ts",
  "test/stores/postgres.slow.test.ts",
  "test/faults/upstreams.slow.test.ts",
  "test/core/heartbeat-load.slow.test.ts",
  "test/faults/side-by-side.slow.test.ts",
  "test/wire/http/slow-readers.slow.test.ts",
  "test/wire/ws/slow-readers.slow.test.ts",
  "test/docs/operations.slow.test.ts",
  "test/backends/model-gateway-faults.slow.test.ts",
  "test/faults/database.slow.test.ts",
  "test/faults/disk.slow.test.ts",
  "test/stores/postgres-shared.slow.test.ts",
  "test/stores/postgres-faults.slow.test.ts",
  "test/stores/upgrade/postgres.slow.test.ts",
  "test/backends/acp.test.ts",
  "test/wire/rpc/hostile.test.ts",
  "test/generate/output.test.ts",
  "test/wire/rpc/errors.test.ts",
  "test/wire/hooks/hostile.test.ts",
  "test/wire/ws/closing.test.ts",
  "test/process/secrets.test.ts",
  "test/stores/sqlite.test.ts",
  "test/process/reload.test.ts",
  "test/docs/webhooks.test.ts",
  "test/docs/agents.test.ts",
  "test/process/start.test.ts",
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
