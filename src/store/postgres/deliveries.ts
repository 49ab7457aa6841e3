import { decodeCursor } from "#store/cursors.ts";
import type {
  Delivery,
  DeliveryQuery,
  DeliveryStep,
  DeliveryWork,
  Page,
  RecordedDelivery,
  RecorderLimits,
  Store,
} from "#store/store.ts";
import { type DeliveryRow, deliveryRow, readDelivery } from "./delivery-codec.ts";
import { type Frame, LANE } from "./frame.ts";
import { pageOf } from "./pages.ts";
import { keepText } from "./texts.ts";

type DeliveryMethods = Pick<Store, "recordDelivery" | "addDeliveryStep" | "getDelivery" | "listDeliveries">;
type Recording = { delivery: Delivery; recorder: RecorderLimits; work: DeliveryWork };

/** So many are recorded in one call. */
const MOST_RECORDED = 100;
/** Strangers fill no more than this part of the recorder's bytes. */
const REFUSED_SHARE = 8;

export const deliveryMethods = (frame: Frame): DeliveryMethods => {
  const record = frame.batcher<Recording, null>({
    most: MOST_RECORDED,
    atOnce: 1,
    bytesOf: ({ delivery }) => delivery.bytes,
    call: (recordings, again) => ["record_finished", [...recordArgs(frame, recordings), again, LANE]],
  });
  return {
    recordDelivery: async (delivery, recorder, work = {}) => {
      await record({ delivery, recorder, work });
    },
    addDeliveryStep: async (deliveryId, step) => {
      await frame.call("add_delivery_step", [keepText(deliveryId), stepText(step), LANE]);
    },
    getDelivery: async (deliveryId) => {
      const [row] = await frame.query<DeliveryRow>(`${READ} where d.delivery_id = $1`, [keepText(deliveryId)]);
      return row && readDelivery(row, false);
    },
    listDeliveries: (query) => listDeliveries(frame, query),
  };
};

export const stepText = ({ at, name, detail }: DeliveryStep): string => JSON.stringify({ at, name, detail });

const recordArgs = (frame: Frame, recordings: readonly Recording[]): [string, string, string] => {
  const rows = recordings.map(({ delivery, work }, order) => {
    const { answer } = delivery;
    return deliveryRow(delivery, { ...work, order, kept: answer === "accepted" ? "gone" : answer });
  });
  const { recorder } = recordings.at(-1) as Recording;
  const { counts } = frame;
  const strangers = {
    size: counts.of("refused"),
    bytes: counts.of("refusedBytes"),
    entries: whole(recorder.refused),
    most: whole(recorder.bytes / REFUSED_SHARE),
  };
  return [JSON.stringify(rows), JSON.stringify(ringView(frame, recorder)), JSON.stringify(strangers)];
};

/** A limit as a number that PostgreSQL takes for one without a fraction. */
export const whole = (limit: number): number => Math.min(Math.floor(limit), Number.MAX_SAFE_INTEGER);

/** The ring of all but refused requests as this node knows it, and what it may hold: for `record_deliveries`. */
export const ringView = (frame: Frame, { entries, bytes }: RecorderLimits) => {
  frame.ringBytes = bytes;
  const { counts } = frame;
  const held = counts.of("deliveryBytes") - counts.of("refusedBytes");
  return {
    size: counts.of("deliveries") - counts.of("refused"),
    bytes: held,
    entries: whole(entries),
    most: whole(bytes),
  };
};

/** What limits.storeBytes counts: of the recorder what it holds past its own, as the work of so much is unfinished. */
export const storeBytes = ({ counts, ringBytes }: Pick<Frame, "counts" | "ringBytes">): number => {
  const ofRing = counts.of("deliveryBytes") - counts.of("refusedBytes");
  return counts.of("bytes") + Math.max(0, ofRing - ringBytes);
};

const OUTCOME = `case d.kept
  when 'turn' then coalesce(t.status, 'gone')
  when 'event' then coalesce(e.state, 'gone')
  else d.kept end`;
const FROM = `from deliveries d
  left join live_turns t on t.turn_id = d.turn_id left join events e on e.event_id = d.event_id and d.kept = 'event'`;
const READ = `select d.*, ${OUTCOME} as outcome, d.turn_id is not null and t.turn_id is null as is_erased ${FROM}`;
const SHORT = `select d.ordinal, d.delivery_id, d.at, d.surface, d.kept, d.request_id, d.turn_id, d.session_id, d.event_id, d.mapping,
  d.sender_id, d.record, null as steps, null as body, ${OUTCOME} as outcome, false as is_erased ${FROM}`;
const IDS = ["delivery_id", "request_id", "turn_id", "event_id", "session_id", "sender_id"];

const listDeliveries = async (frame: Frame, query: DeliveryQuery): Promise<Page<RecordedDelivery>> => {
  const { surface, outcome, mapping, sessionId, id, from, to, limit, cursor } = query;
  const values: unknown[] = [limit + 1];
  const wanted: string[] = [];
  const want = (what: (place: string) => string, value: unknown) => {
    if (value !== undefined) wanted.push(what(`$${values.push(value)}`));
  };
  want((place) => `d.ordinal < ${place}`, cursor === undefined ? undefined : decodeCursor(cursor));
  want((place) => `d.surface = ${place}`, surface);
  want((place) => `${OUTCOME} = ${place}`, outcome);
  want((place) => `d.mapping = ${place}`, mapping === undefined ? undefined : keepText(mapping));
  want((place) => `d.session_id = ${place}`, sessionId === undefined ? undefined : keepText(sessionId));
  want((place) => `d.at >= ${place}`, from);
  want((place) => `d.at < ${place}`, to);
  want(
    (place) => `(${IDS.map((name) => `d.${name} = ${place}`).join(" or ")})`,
    id === undefined ? undefined : keepText(id),
  );
  const where = wanted.length > 0 ? `where ${wanted.join(" and ")}` : "";
  const rows = await frame.query<DeliveryRow>(`${SHORT} ${where} order by d.ordinal desc limit $1`, values);
  return pageOf(rows, limit, (row) => readDelivery(row, true));
};
