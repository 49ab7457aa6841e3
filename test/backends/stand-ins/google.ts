import { RAW } from "./faults.ts";
import { eventStream, type ModelAnswer, startModelStandIn, USAGE } from "./model-answers.ts";

/** Google's Gemini, as `POST /v1beta/models/…:streamGenerateContent?alt=sse` streams it. */
export function startGoogle(usual?: ModelAnswer) {
  return startModelStandIn((answer) => {
    const error = { error: { code: 503, message: RAW, status: "UNAVAILABLE" } };
    return eventStream(events(answer), answer, `data: ${JSON.stringify(error)}\r\n\r\n`);
  }, usual);
}

function events({ thought, text = [], calls = [], finish = "stop", usage = USAGE }: ModelAnswer): string[] {
  const parts = [
    ...(thought === undefined ? [] : [{ text: thought, thought: true }]),
    ...text.map((piece) => ({ text: piece })),
    ...calls.map(({ name, args }) => ({
      functionCall: { name, args: JSON.parse(args) as unknown },
      thoughtSignature: "c2lnbmVk",
    })),
  ];
  const reason = { stop: "STOP", length: "MAX_TOKENS", filter: "SAFETY" }[finish];
  const event = (part: object, isLast: boolean) => {
    const content = { content: { parts: [part], role: "model" } };
    const candidate = isLast ? { ...content, finishReason: reason, index: 0 } : { ...content, index: 0 };
    const used = {
      promptTokenCount: usage.input,
      candidatesTokenCount: usage.output - usage.reasoning,
      totalTokenCount: usage.input + usage.output,
      cachedContentTokenCount: usage.cached,
      promptTokensDetails: [{ modality: "TEXT", tokenCount: usage.input }],
      thoughtsTokenCount: usage.reasoning,
    };
    const more = { usageMetadata: used, modelVersion: "gemini-2.5-flash", responseId: "qIgkafH2Dr" };
    return `data: ${JSON.stringify({ candidates: [candidate], ...more })}\r\n\r\n`;
  };
  return parts.length === 0 ? [event({ text: "" }, true)] : parts.map((part, n) => event(part, n === parts.length - 1));
}
