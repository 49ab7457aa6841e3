import type { LanguageModelV3FunctionTool, LanguageModelV3Message } from "@ai-sdk/provider";
import { cleanSentence } from "#kit/clean-words.ts";
import { type Tool, ToolError } from "#tools/tool.ts";
import { fence } from "../fence.ts";
import type { ToolCall } from "./step.ts";

/** The number of calls that may run at once. A model that asks for more has lost its way. */
const CALLS_AT_ONCE = 64;
/** The longest part of an invented tool name that is repeated. */
const NAME_CHARACTERS = 100;
const LAST_CALL = "(No more tools can be called in this turn. Answer now, with what you have.)";

type ResultPart = Extract<
  Extract<LanguageModelV3Message, { role: "tool" }>["content"][number],
  { type: "tool-result" }
>;
type RefusedCall = { tool: string; reason: string; arguments: string };
type ToolMessage = Extract<LanguageModelV3Message, { role: "tool" }>;
type Output = Extract<ResultPart["output"], { type: "text" | "error-text" }>;

export function toolsForModel(tools: readonly Tool[]): LanguageModelV3FunctionTool[] {
  return tools.map(({ name, description, parameters }) => ({
    type: "function",
    name,
    description,
    inputSchema: parameters as LanguageModelV3FunctionTool["inputSchema"],
  }));
}

/**
 * Runs all calls of a model at once. Returns the answers for the model, and the calls that no tool has seen. A failed call is an
 * answer too.
 */
export async function answerCalls(
  tools: readonly Tool[],
  calls: readonly ToolCall[],
  isLast: boolean,
  signal: AbortSignal,
): Promise<{ answer: ToolMessage; refused: RefusedCall[] }> {
  const refused: RefusedCall[] = [];
  const outputs = await Promise.all(
    calls.map((call, n) => {
      const tool = n < CALLS_AT_ONCE ? toolOf(tools, call) : "Too many calls at once.";
      if (typeof tool !== "string") return answerCall(tool, call, signal);
      refused.push({ tool: cleanSentence(call.toolName, NAME_CHARACTERS), reason: tool, arguments: call.input });
      return failed(tool);
    }),
  );
  const last = outputs.at(-1);
  if (isLast && last) last.value += `\n\n${LAST_CALL}`;
  const content = calls.map(({ toolCallId, toolName }, n): ResultPart => {
    return { type: "tool-result", toolCallId, toolName, output: outputs[n] as Output };
  });
  return { answer: { role: "tool", content }, refused };
}

/** The called tool, or the reason why there is none. */
function toolOf(tools: readonly Tool[], call: ToolCall): Tool | string {
  const tool = tools.find(({ name }) => name === call.toolName);
  if (!tool) return `No tool has this name. The tools are: ${tools.map(({ name }) => name).join(", ")}.`;
  return call.args ? tool : "The arguments of the call are not a JSON object.";
}

async function answerCall(tool: Tool, { args }: ToolCall, signal: AbortSignal): Promise<Output> {
  try {
    return { type: "text", value: shown(tool, await tool.call(args, signal)) };
  } catch (error) {
    return failed(error instanceof ToolError ? shown(tool, error.message) : "The tool failed.");
  }
}

function shown({ isOutside }: Tool, text: string): string {
  return isOutside ? fence("The tool's answer.", text) : text;
}

function failed(value: string): Output {
  return { type: "error-text", value };
}

/**
 * The messages between a model and its tools, for another model: parts that only the first one's provider can read are left out.
 */
export function portable(messages: readonly LanguageModelV3Message[]): LanguageModelV3Message[] {
  return messages.map((message) => {
    if (message.role !== "assistant") return message;
    const content = message.content
      .filter(({ type }) => type !== "reasoning")
      .map(({ providerOptions: _theirs, ...part }) => part as (typeof message.content)[number]);
    return { role: "assistant", content };
  });
}
