import { RAW } from "./faults.ts";
import { eventStream, type ModelAnswer, startModelStandIn, USAGE } from "./model-answers.ts";

/** Anthropic's messages, as `POST /v1/messages` streams them. */
export function startAnthropic(usual?: ModelAnswer) {
  return startModelStandIn((answer) => {
    const error = {
      type: "error",
      error: { details: null, type: "overloaded_error", message: RAW },
      request_id: "req_1",
    };
    return eventStream(events(answer), answer, `event: error\ndata: ${JSON.stringify(error)}\n\n`);
  }, usual);
}

function event(data: { type: string }) {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}

function events({ thought, text = [], calls = [], finish = "stop", usage = USAGE }: ModelAnswer): string[] {
  const blocks: { block: object; deltas: object[] }[] = [];
  if (thought !== undefined)
    blocks.push({
      block: { type: "thinking", thinking: "", signature: "" },
      deltas: [
        { type: "thinking_delta", thinking: thought },
        { type: "signature_delta", signature: `signed ${thought}` },
      ],
    });
  if (text.length > 0)
    blocks.push({
      block: { type: "text", text: "" },
      deltas: text.map((piece) => ({ type: "text_delta", text: piece })),
    });
  for (const [n, { name, args }] of calls.entries())
    blocks.push({
      block: { type: "tool_use", id: `toolu_${n}`, name, input: {} },
      deltas: ["", args.slice(0, args.length / 2), args.slice(args.length / 2)].map((partial_json) => ({
        type: "input_json_delta",
        partial_json,
      })),
    });
  const reason = calls.length > 0 ? "tool_use" : { stop: "end_turn", length: "max_tokens", filter: "refusal" }[finish];
  const input = {
    input_tokens: usage.input - usage.cached,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: usage.cached,
  };
  const message = {
    model: "claude-sonnet-4-5-20250929",
    id: "msg_01XFDUDYJgAACzvnptvVoYEL",
    type: "message",
    role: "assistant",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { ...input, output_tokens: 1, service_tier: "standard" },
  };
  return [
    event({ type: "message_start", message } as { type: string }),
    ...blocks.flatMap(({ block, deltas }, index) => [
      event({ type: "content_block_start", index, content_block: block } as { type: string }),
      ...(index === 0 ? [event({ type: "ping" })] : []),
      ...deltas.map((delta) => event({ type: "content_block_delta", index, delta } as { type: string })),
      event({ type: "content_block_stop", index } as { type: string }),
    ]),
    event({
      type: "message_delta",
      delta: { stop_reason: reason, stop_sequence: null },
      usage: { ...input, output_tokens: usage.output },
    } as { type: string }),
    event({ type: "message_stop" }),
  ];
}
