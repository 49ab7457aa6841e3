import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Begins with what took longest the last time, and keeps a project's files together: a process that they share ends where another's come. */
export class LongestFirst extends BaseSequencer {
  override async sort(specs: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(specs);
    const projects = [...new Set(sorted.map(({ project }) => project.name))];
    return projects.flatMap((name) => sorted.filter(({ project }) => project.name === name));
  }
}
