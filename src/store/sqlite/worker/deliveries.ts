import { weighDelivery } from "#store/live/weights.ts";
import type { DeliveryRecord, Records } from "#store/rules/records.ts";
import type { Database } from "./database.ts";
import { Table } from "./table.ts";

/** What is kept of refused strangers, or of all others. `ended`: how many may be let go. */
export type Shelf = { size: number; bytes: number; ended: number };
export type Shelves = { refused: Shelf; others: Shelf };

const HELD = 100;
/** So many that may go are read together. */
const ENDED_TOGETHER = 64;

const isRefused = ({ delivery }: DeliveryRecord): boolean => delivery.answer === "refused";

export const deliveryTable = (db: Database, shelves: Shelves) => {
  const table = new Table<string, DeliveryRecord>(db, {
    table: "deliveries",
    key: "delivery_id",
    columns: ["place", "refused", "ended_order"],
    keyOf: ({ delivery }) => delivery.deliveryId,
    valuesOf: (record) => [record.place, isRefused(record) ? 1 : 0, record.endedOrder ?? null],
    held: HELD,
  });
  const before = table.search("WHERE place < ? ORDER BY place DESC LIMIT ?");
  const ended = table.search("WHERE refused = ? AND ended_order IS NOT NULL ORDER BY ended_order LIMIT ?");
  const oldest: Record<"refused" | "others", string[]> = { refused: [], others: [] };
  const count = (record: DeliveryRecord, by: 1 | -1): void => {
    const shelf = shelves[isRefused(record) ? "refused" : "others"];
    shelf.size += by;
    shelf.bytes += by * weighDelivery(record);
    if (record.endedOrder !== undefined) shelf.ended += by;
  };
  const records: Records["deliveries"] = {
    find: (deliveryId) => table.find(deliveryId),
    put: (record) => {
      const known = table.held(record.delivery.deliveryId);
      if (known) count(known, -1);
      count(record, 1);
      table.put(record);
    },
    delete: (record) => {
      count(record, -1);
      table.delete(record.delivery.deliveryId);
    },
    shelf: (refused) => shelves[refused ? "refused" : "others"],
    firstEnded: (refused) => {
      const name = refused ? "refused" : "others";
      if (shelves[name].ended === 0) return undefined;
      for (;;) {
        if (oldest[name].length === 0) {
          const found = table.hold(ended(refused ? 1 : 0, ENDED_TOGETHER));
          oldest[name] = found.map(({ delivery }) => delivery.deliveryId);
        }
        const [deliveryId] = oldest[name];
        const record = deliveryId === undefined ? undefined : table.find(deliveryId);
        if (record || deliveryId === undefined) return record;
        oldest[name].shift();
      }
    },
    before: (place, limit) => before(Math.min(place, Number.MAX_SAFE_INTEGER), limit),
  };
  return { table, records };
};
