import type { DeliverySummary } from "#generated/clients/typescript/src/rest-types.ts";

type Refused = Pick<DeliverySummary, "delivery_id" | "at" | "status" | "error">;
type Reason = { reason: string; detail: string; count: number; latest: string; at: string };

/** Refused requests by their error and its detail, the most frequent first. `latest` is the newest of each. */
export function reasonsOf(refused: readonly Refused[]): Reason[] {
  const reasons = new Map<string, Reason>();
  for (const { delivery_id, at, status, error } of refused) {
    const reason = error?.name ?? `status ${status ?? "unknown"}`;
    const detail = error?.detail ?? "";
    // One error has several causes: a wrong signature is not a missing token.
    const key = `${reason} ${detail}`;
    const known = reasons.get(key) ?? { reason, detail, count: 0, latest: delivery_id, at };
    known.count += 1;
    if (at > known.at) Object.assign(known, { at, latest: delivery_id });
    reasons.set(key, known);
  }
  return [...reasons.values()].sort((one, other) => other.count - one.count);
}
