import { RAW } from "./faults.ts";
import { eventStream, type ModelAnswer, startModelStandIn, USAGE } from "./model-answers.ts";

/** OpenAI's chat completions, as `POST /v1/chat/completions` streams them. */
export function startChatCompletions(usual?: ModelAnswer) {
  return startModelStandIn(
    (answer) => eventStream(chatEvents(answer), answer, `data: ${JSON.stringify(chatError)}\n\n`),
    usual,
  );
}

const chatError = { error: { message: RAW, type: "server_error", param: null, code: null } };

function chatEvents({ thought, text = [], calls = [], finish = "stop", usage = USAGE }: ModelAnswer): string[] {
  const chunk = (choices: unknown[], used: unknown = null) =>
    `data: ${JSON.stringify({
      id: "chatcmpl-CgPxyz0123456789",
      object: "chat.completion.chunk",
      created: 1764000000,
      model: "gpt-4.1-mini-2025-04-14",
      service_tier: "default",
      system_fingerprint: "fp_44709d6fcb",
      choices,
      usage: used,
    })}\n\n`;
  const delta = (delta: object, reason: string | null = null) =>
    chunk([{ index: 0, delta, logprobs: null, finish_reason: reason }]);
  return [
    delta({ role: "assistant", content: calls.length > 0 && text.length === 0 ? null : "", refusal: null }),
    ...(thought === undefined ? [] : [delta({ reasoning_content: thought })]),
    ...text.map((content) => delta({ content })),
    ...calls.flatMap(({ name, args }, index) => {
      const [head, tail] = [args.slice(0, args.length / 2), args.slice(args.length / 2)];
      const first = { index, id: `call_${index}`, type: "function", function: { name, arguments: "" } };
      const more = [head, tail].map((part) => ({ index, function: { arguments: part } }));
      return [first, ...more].map((call) => delta({ tool_calls: [call] }));
    }),
    delta({}, calls.length > 0 ? "tool_calls" : { stop: "stop", length: "length", filter: "content_filter" }[finish]),
    chunk([], {
      prompt_tokens: usage.input,
      completion_tokens: usage.output,
      total_tokens: usage.input + usage.output,
      prompt_tokens_details: { cached_tokens: usage.cached, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: usage.reasoning, audio_tokens: 0 },
    }),
    "data: [DONE]\n\n",
  ];
}

/** OpenAI's responses, as `POST /v1/responses` streams them. */
export function startResponses(usual?: ModelAnswer) {
  return startModelStandIn((answer) => {
    const error = { type: "error", code: "server_error", message: RAW, param: null, sequence_number: 9 };
    return eventStream(responseEvents(answer), answer, `event: error\ndata: ${JSON.stringify(error)}\n\n`);
  }, usual);
}

function responseEvents({ thought, text = [], calls = [], finish = "stop", usage = USAGE }: ModelAnswer): string[] {
  let sequence = 0;
  const event = (type: string, more: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...more })}\n\n`;
  const incomplete = { stop: null, length: { reason: "max_output_tokens" }, filter: { reason: "content_filter" } }[
    finish
  ];
  const response = (status: string, more: object) => ({
    response: {
      id: "resp_0a1b2c3d",
      object: "response",
      created_at: 1764000000,
      status,
      background: false,
      error: null,
      incomplete_details: null,
      instructions: null,
      model: "gpt-5-mini-2025-08-07",
      output: [],
      parallel_tool_calls: true,
      store: false,
      usage: null,
      ...more,
    },
  });
  const items = [
    ...(thought === undefined ? [] : [{ type: "reasoning", thought }]),
    ...(text.length === 0 ? [] : [{ type: "message", text }]),
    ...calls.map((call) => ({ type: "function_call", call })),
  ];
  const events = [
    event("response.created", response("in_progress", {})),
    event("response.in_progress", response("in_progress", {})),
  ];
  for (const [output_index, item] of items.entries()) {
    const item_id = `${item.type}_${output_index}`;
    const place = { item_id, output_index };
    if ("thought" in item) {
      const whole = { id: item_id, type: "reasoning", encrypted_content: `sealed ${item.thought}`, summary: [] };
      events.push(event("response.output_item.added", { output_index, item: { ...whole, encrypted_content: "" } }));
      events.push(event("response.output_item.done", { output_index, item: whole }));
    } else if ("text" in item) {
      const whole = { type: "output_text", annotations: [], logprobs: [], text: item.text.join("") };
      const message = { id: item_id, type: "message", status: "in_progress", content: [], role: "assistant" };
      events.push(event("response.output_item.added", { output_index, item: message }));
      const at = { ...place, content_index: 0 };
      events.push(event("response.content_part.added", { ...at, part: { ...whole, text: "" } }));
      for (const delta of item.text)
        events.push(event("response.output_text.delta", { ...at, delta, logprobs: [], obfuscation: "xYz12" }));
      events.push(event("response.output_text.done", { ...at, text: whole.text, logprobs: [] }));
      events.push(event("response.content_part.done", { ...at, part: whole }));
      const done = { ...message, status: "completed", content: [whole] };
      events.push(event("response.output_item.done", { output_index, item: done }));
    } else {
      const { name, args } = item.call;
      const call = { id: item_id, type: "function_call", call_id: `call_${output_index}`, name };
      const added = { ...call, status: "in_progress", arguments: "" };
      events.push(event("response.output_item.added", { output_index, item: added }));
      for (const delta of [args.slice(0, args.length / 2), args.slice(args.length / 2)])
        events.push(event("response.function_call_arguments.delta", { ...place, delta, obfuscation: "a" }));
      events.push(event("response.function_call_arguments.done", { ...place, arguments: args }));
      const done = { ...call, status: "completed", arguments: args };
      events.push(event("response.output_item.done", { output_index, item: done }));
    }
  }
  const used = {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: usage.cached },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.reasoning },
    total_tokens: usage.input + usage.output,
  };
  const [type, status] = incomplete ? ["response.incomplete", "incomplete"] : ["response.completed", "completed"];
  events.push(event(type as string, response(status as string, { usage: used, incomplete_details: incomplete })));
  return events;
}
