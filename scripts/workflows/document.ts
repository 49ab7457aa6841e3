import { readFileSync } from "node:fs";
import { parse } from "yaml";

export const WORKFLOWS = "specs/workflows.arazzo.yaml";

export type Step = {
  stepId: string;
  description: string;
  operationPath: string;
  requestBody?: { payload: unknown };
  outputs?: Record<string, string>;
};
export type Workflow = {
  workflowId: string;
  summary: string;
  description: string;
  inputs: { properties: Record<string, { $ref: string }> };
  steps: Step[];
};
export type WorkflowDocument = {
  info: { title: string; summary: string; description: string };
  workflows: Workflow[];
  components: { inputs: Record<string, { description: string }> };
};

export function readWorkflows(): WorkflowDocument {
  return parse(readFileSync(WORKFLOWS, "utf8"));
}

/** The parts of a configuration that the workflows need, as their document shows them. */
export function configurationIn({ info }: WorkflowDocument): string {
  const [, block] = /^```json5\n([\s\S]*?)^```$/m.exec(info.description) ?? [];
  if (block === undefined) throw new Error(`${WORKFLOWS} has no configuration in its description.`);
  return block;
}

/** The body of a step, as a client of JSON sends it. */
export function bodyOf({ workflows }: WorkflowDocument, stepId: string): string {
  const step = workflows.flatMap(({ steps }) => steps).find((one) => one.stepId === stepId);
  if (step?.requestBody === undefined) throw new Error(`${WORKFLOWS} has no step ${stepId} with a body.`);
  return JSON.stringify(step.requestBody.payload);
}
