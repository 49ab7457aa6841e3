import { expect, test } from "vitest";
import type { McpTask, McpTool } from "#core/mcp-tools.ts";
import { GatewayError } from "#kit/errors.ts";
import { startGateway } from "#test/harness/gateway.ts";
import { runScenario, scenariosOf, startKeyProxy } from "#test/harness/mcp-conformance.ts";
import { SUMMARISE, skillsFolder } from "#test/harness/skills.ts";
import { fakeTools, LEGACY, MODERN } from "./clients.ts";

/** Scenarios that are not run, with the reason. */
const LEFT_OUT: Record<string, string> = {
  "tools-call-image": "answers of tools are text",
  "tools-call-audio": "answers of tools are text",
  "tools-call-embedded-resource": "answers of tools are text",
  "tools-call-mixed-content": "answers of tools are text",
  "tools-call-with-logging": "logging, which is deprecated, is not offered",
  "logging-set-level": "logging, which is deprecated, is not offered",
  "tools-call-sampling": "nothing is asked of clients",
  "tools-call-elicitation": "nothing is asked of clients",
  "elicitation-sep1034-defaults": "nothing is asked of clients",
  "elicitation-sep1330-enums": "nothing is asked of clients",
  "input-required-result-basic-elicitation": "nothing is asked of clients",
  "input-required-result-basic-sampling": "nothing is asked of clients",
  "input-required-result-basic-list-roots": "nothing is asked of clients",
  "input-required-result-request-state": "nothing is asked of clients",
  "input-required-result-multiple-input-requests": "nothing is asked of clients",
  "input-required-result-multi-round": "nothing is asked of clients",
  "input-required-result-non-tool-request": "nothing is asked of clients",
  "input-required-result-result-type": "nothing is asked of clients",
  "input-required-result-tampered-state": "nothing is asked of clients",
  "input-required-result-capability-check": "nothing is asked of clients",
  "tasks-mrtr-input": "nothing is asked of clients",
  "tasks-mrtr-composition": "nothing is asked of clients",
  "completion-complete": "needs a prompt of the reference server",
  "prompts-list": "needs a prompt of the reference server",
  "prompts-get-simple": "needs a prompt of the reference server",
  "prompts-get-with-args": "needs a prompt of the reference server",
  "prompts-get-embedded-resource": "needs a prompt of the reference server",
  "prompts-get-with-image": "needs a prompt of the reference server",
  "resources-read-text": "needs a resource of the reference server",
  "resources-read-binary": "needs a resource of the reference server",
  "resources-templates-read": "needs a resource of the reference server",
  "resources-subscribe": "needs sessions, which this server does not have",
  "resources-unsubscribe": "needs sessions, which this server does not have",
  "json-schema-2020-12": "needs a tool of the reference server whose schema it compares",
  "http-custom-header-server-validation": "needs a tool of the reference server with headers of its own",
  "tasks-required-task-error": "needs a tool of the reference server that only runs as a task",
};

/** Checks of scenarios that are run which need the same. A name with a star is a beginning. */
const UNTESTABLE: Record<string, readonly string[]> = {
  // A fixture asks the client, or logs.
  "server-stateless": [
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
  ],
  caching: ["sep-2549-prompts-list-caching-hints"],
  // No call of a tool can fail by an error of the protocol after its task was made.
  "tasks-lifecycle": ["sep-2663-tasks-get-status-failed"],
};

/** The tools that scenarios call. */
const FIXTURES = ["test_simple_text", "test_error_handling", "test_tool_with_progress", "greet"];
const TURNS = ["slow_compute", "failing_job", "protocol_error_job"];

function fixtures() {
  const tasks = new Map<string, McpTask>();
  const taskWith = async (id: string): Promise<McpTask> => {
    const task = tasks.get(id);
    if (!task) throw new GatewayError("turn-not-found");
    return { ...task };
  };
  const toolOf = (name: string): McpTool => ({
    ...{
      name,
      title: name,
      description: "A tool of the suite.",
      inputSchema: { type: "object" },
      outputSchema: undefined,
    },
    ...{ hint: "read", isTrusted: true, startsTurn: TURNS.includes(name) },
  });
  return fakeTools({
    list: async () => [...FIXTURES, ...TURNS].map(toolOf),
    find: (name) => ([...FIXTURES, ...TURNS].includes(name) ? toolOf(name) : undefined),
    async call(name, args, { progress }) {
      if (name === "test_error_handling") return { text: "This tool intentionally returns an error", isError: true };
      if (name === "greet") return { text: `Hello, ${(args as { name?: string }).name}!` };
      if (name === "test_tool_with_progress")
        for (const steps of [1, 2, 3]) {
          progress?.(steps);
          await new Promise((resolve) => setTimeout(resolve, 1_050));
        }
      return { text: "This is a simple text response for testing." };
    },
    async start(name, args) {
      const turnId = `turn_${tasks.size}`;
      const turn = { turnId, createdAt: Date.now() } as McpTask["turn"];
      const task: McpTask = { turn, status: "working", answer: undefined };
      tasks.set(turnId, task);
      const { seconds = 1 } = args as { seconds?: number };
      setTimeout(() => {
        if (task.status !== "working") return;
        task.status = "completed";
        task.answer = { text: "done", isError: name === "failing_job" };
      }, seconds * 1_000);
      return { ...task };
    },
    task: taskWith,
    async cancel(id) {
      await taskWith(id);
      const task = tasks.get(id) as McpTask;
      if (task.status === "working") task.status = "cancelled";
      return task;
    },
  });
}

const FOLDER = skillsFolder(SUMMARISE);
const SKILLS = ["sep-2640-skills-enumeration", "sep-2640-skills-manifest", "sep-2640-skills-directory"];

/** Scenarios that run against the tools of the gateway itself. All others run against fixtures. */
const OWN = ["server-initialize", "ping", "tools-list", "resources-list", "caching", "server-stateless", ...SKILLS];

test.each([
  ...[LEGACY, MODERN].map((revision) => ({ revision, scenarios: scenariosOf(revision) })),
  { revision: undefined, scenarios: SKILLS },
])("the scenarios of the official suite pass: $revision", { timeout: 600_000 }, async ({ revision, scenarios }) => {
  const skills = { dirs: [FOLDER] };
  const gateway = { mcp: { enabled: true, operator: "write" as const }, rest: { rateLimit: { maxRequests: 0 } } };
  const agents = { main: { backend: "echo" as const, skills: ["*"] } };
  await using own = await startGateway({ config: { gateway, agents, skills } });
  await using other = await startGateway({ config: { gateway }, mcpTools: fixtures() });
  await using ownProxy = await startKeyProxy(own.url, own.adminKey);
  await using otherProxy = await startKeyProxy(other.url, other.adminKey);
  const faults: string[] = [];
  for (const scenario of scenarios.filter((one) => LEFT_OUT[one] === undefined)) {
    const { url } = OWN.includes(scenario) ? ownProxy : otherProxy;
    const checks = await runScenario(url, scenario, scenario.startsWith("tasks-") ? undefined : revision);
    if (checks.length === 0) faults.push(`${scenario}: no checks`);
    for (const { id, status, errorMessage } of checks)
      if (status === "FAILURE" && !UNTESTABLE[scenario]?.includes(id))
        faults.push(`${scenario}: ${id}: ${errorMessage}`);
  }
  expect(faults).toEqual([]);
});

test("every scenario that is left out exists", () => {
  const all = [LEGACY, MODERN].flatMap(scenariosOf);
  expect(Object.keys(LEFT_OUT).filter((scenario) => !all.includes(scenario))).toEqual([]);
});
