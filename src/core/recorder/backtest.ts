import { fillPlaces, type Places } from "#core/mapping-places.ts";
import type { Mapping, Mappings, Miss } from "#core/mappings.ts";
import type { CoreParts } from "#core/parts.ts";
import { copiedText } from "#kit/copied-text.ts";
import { mappedJsonOf } from "#kit/forms.ts";
import { BODY_LIMITS, limitPassed } from "#kit/json-limits.ts";
import { excerptOf, type MappedRequest } from "#kit/mapping-paths.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type { RecordedDelivery } from "#store/store.ts";
import { headersOf } from "./deliveries.ts";
import { showBody } from "./shown-body.ts";

/** The most recorded webhooks that are searched for bodies. */
const MOST_SEARCHED = 1_000;
const PAGE = 100;
/** The most characters of a message that are shown, and the most expected values of a pair that failed. */
const SHOWN_MESSAGE = 1_000;
const SHOWN_VALUES = 5;

/** The result of a draft for one recorded webhook: the message, its session and the key of its burst, or the pair that failed. */
export type Backtested = { delivery: RecordedDelivery } & (
  | { message: string; session: string | undefined; key: string | undefined; miss?: undefined }
  | { message?: undefined; session?: undefined; key?: undefined; miss: Miss }
);

/**
 * Tries a mapping on the newest recorded webhooks that have a body of JSON or a form. The mapping reads what a reader may see: values in fields with the
 * name of a secret are hidden. Bodies are read one at a time, and other calls run in between.
 */
export async function backtest(
  { store, settings, hide }: Pick<CoreParts, "store" | "settings" | "hide">,
  mapping: Mapping,
  { limit, signal }: { limit: number; signal: AbortSignal },
): Promise<{ tried: Backtested[]; skipped: number }> {
  const tried: Backtested[] = [];
  const { dryRun } = settings().mappings;
  let skipped = 0;
  let cursor: string | undefined;
  do {
    const page = await store.listDeliveries({ surface: "hooks", limit: PAGE, ...(cursor !== undefined && { cursor }) });
    for (const { deliveryId } of page.items) {
      // If the caller disconnects or the gateway stops, the counts cover the webhooks tried so far.
      if (signal.aborted) return { tried, skipped };
      await yieldToOthers();
      const delivery = await store.getDelivery(deliveryId);
      const request = delivery && requestOf(delivery);
      if (!request) skipped++;
      else tried.push(resultOf(delivery, dryRun(request, mapping), fillPlaces(mapping.places, request, hide)));
      if (tried.length === limit || tried.length + skipped === MOST_SEARCHED) return { tried, skipped };
    }
    cursor = page.next;
  } while (cursor !== undefined);
  return { tried, skipped };
}

/** Only what is shown stays in memory while the other bodies are read. */
function resultOf(
  delivery: RecordedDelivery,
  { trials: [trial] }: ReturnType<Mappings["dryRun"]>,
  { session, key }: Places,
): Backtested {
  const shown = { ...delivery, body: undefined, headers: "", steps: [] };
  if (trial && "miss" in trial) return { delivery: shown, miss: shownMiss(trial.miss) };
  const message = trial?.message.slice(0, SHOWN_MESSAGE).replace(/[\uD800-\uDBFF]$/, "") ?? "";
  const shownKey = key === undefined ? undefined : copiedText(excerptOf(key) ?? "");
  return { delivery: shown, message: copiedText(message), session: session && copiedText(session), key: shownKey };
}

/** The same pair fails for many webhooks, so its values are excerpts. */
function shownMiss({ path, expected, found }: Miss): Miss {
  const values = expected.slice(0, SHOWN_VALUES).map((text) => excerptOf(text) ?? "");
  return { path, expected: values, found: found === null ? null : copiedText(found) };
}

/** Undefined for a body that no mapping could read. */
function requestOf(delivery: RecordedDelivery): MappedRequest | undefined {
  const headers = headersOf(delivery);
  const { body: text, encoding } = showBody(delivery.body, headers["content-type"]);
  const json = encoding === "utf-8" ? mappedJsonOf(headers["content-type"], text) : undefined;
  if (json === undefined || limitPassed(json, BODY_LIMITS) !== undefined) return undefined;
  try {
    const body: unknown = JSON.parse(json);
    return typeof body === "object" && body !== null ? { headers, body } : undefined;
  } catch {
    return undefined;
  }
}
