import type { Bundle } from "../../generate/bundle.ts";
import { list, object, text } from "../../generate/json.ts";
import { readWorkflows, type Step, type Workflow, type WorkflowDocument } from "../../workflows/document.ts";
import { type Exchange, readRecording } from "../../workflows/recording.ts";
import { curl } from "./samples.ts";
import { block, code, paragraphs, pretty } from "./words.ts";

/** The workflows of the contract, with the calls and answers of a run. */
export function walkthroughs(openapi: Bundle): string {
  const document = readWorkflows();
  const recording = readRecording();
  const { summary, description } = document.info;
  return paragraphs(
    "# Walkthroughs",
    summary,
    "The answers were recorded from a running gateway; ids, keys and times are replaced. The workflows are in `specs/workflows.arazzo.yaml`.",
    description,
    ...document.workflows.map((workflow) => {
      const { workflowId, summary, description, steps } = workflow;
      return paragraphs(
        `## ${summary} {#${workflowId}}`,
        description,
        inputsOf(workflow, document),
        ...steps.map((step, n) => {
          const exchange = recording[workflowId]?.[step.stepId];
          if (exchange === undefined)
            throw new Error(`The step ${step.stepId} is not recorded: WALKS=renew npm run workflows`);
          return paragraphs(
            `### ${n + 1}. ${step.description.replace(/\.$/, "")} {#${step.stepId}}`,
            ...stepOf(step, exchange, openapi),
          );
        }),
      );
    }),
  );
}

/** The secrets that a workflow needs, by the variables of its commands. */
function inputsOf({ inputs }: Workflow, { components }: WorkflowDocument): string {
  return Object.entries(inputs.properties)
    .map(
      ([name, { $ref }]) =>
        `- ${code(name.toUpperCase())}: ${components.inputs[$ref.split("/")[3] as string]?.description}`,
    )
    .join("\n");
}

function stepOf({ operationPath, outputs }: Step, exchange: Exchange, { document }: Bundle): string[] {
  const [path = "", method = ""] = (operationPath.split("#/paths/")[1] ?? "").split("/");
  const operation = object(object(object(document.paths)[path.replaceAll("~1", "/")])[method]);
  const id = text(operation.operationId);
  const page = list(operation.tags)[0] === "hooks" ? "hooks" : "rest";
  const { status, answer, body } = exchange;
  // The command names the type of a body itself.
  const { "content-type": _, authorization, ...others } = exchange.headers;
  const headers = { ...(authorization !== undefined && { Authorization: authorization }), ...others };
  const isStream = typeof answer === "string";
  const request = {
    method: exchange.method,
    at: exchange.path,
    path: {},
    query: {},
    body,
    headers,
    token: "",
    isStream,
  };
  const taken = Object.values(outputs ?? {}).map((expression) => code(expression.split("#/")[1] ?? ""));
  return [
    `Calls [${id}](${page}.html#${id}).${taken.length === 0 ? "" : ` Later steps take ${taken.join(" and ")} from its answer.`}`,
    block("sh", curl(request)),
    `Answer ${code(String(status))}`,
    status === 204 ? "" : block(isStream ? "http" : "json", pretty(answer)),
  ];
}
