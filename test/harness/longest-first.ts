import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Starts with the files that took longest in the last run, and runs the files of a project together: a shared process ends when files of another
 * project follow.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(specs: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(specs);
    const projects = [...new Set(sorted.map(({ project }) => project.name))];
    return projects.flatMap((name) => sorted.filter(({ project }) => project.name === name));
  }
}
