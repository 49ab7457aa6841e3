import type { Delivery } from "#generated/clients/typescript/src/rest.ts";

type Refused = Pick<Delivery, "delivery_id" | "at" | "status" | "timeline">;
type Reason = { reason: string; detail: string; count: number; latest: string; at: string };

/** Refused requests by the error that they were answered and its words, the most frequent first. `latest` is the newest of each. */
export function reasonsOf(refused: readonly Refused[]): Reason[] {
  const reasons = new Map<string, Reason>();
  for (const { delivery_id, at, status, timeline } of refused) {
    const step = timeline.find(({ name }) => name === "request.refused");
    const { error, detail } = (step?.detail ?? {}) as { error?: string; detail?: string };
    const reason = error ?? `status ${status ?? "unknown"}`;
    // One error has several causes: a wrong signature is no missing token.
    const key = `${reason} ${detail}`;
    const known = reasons.get(key) ?? { reason, detail: detail ?? "", count: 0, latest: delivery_id, at };
    known.count += 1;
    if (at > known.at) Object.assign(known, { at, latest: delivery_id });
    reasons.set(key, known);
  }
  return [...reasons.values()].sort((one, other) => other.count - one.count);
}
