import { bytesOf } from "../text.ts";
import type { Database, Query, Rows } from "./database.ts";
import type { Parts } from "./parts.ts";
import type { TurnRow } from "./rows.ts";
import type { TotalsRow } from "./totals.ts";
import { deliveryIdIn, encodeEndedTurn } from "./turn-codec.ts";

/** What such a turn weighs beside its body. */
const ENDED_BYTES = 48;

/** Turns that have ended. Their texts stay in the journal. */
export class EndedTurns {
  readonly #totals: TotalsRow;
  readonly #rows: Rows;
  readonly #byId: Query;
  readonly #below: Query;
  readonly #delete: ReturnType<Database["run"]>;

  constructor({ db, totals }: Parts) {
    this.#totals = totals;
    this.#rows = db.rows("INSERT INTO turns", 3);
    this.#byId = db.query(`SELECT session, ${bytesOf("body")} FROM turns WHERE turn_id = ?`);
    this.#below = db.query(
      `SELECT turn_id, session, ${bytesOf("body")} FROM turns WHERE turn_id < ? ORDER BY turn_id DESC LIMIT ?`,
    );
    this.#delete = db.run("DELETE FROM turns WHERE turn_id = ?");
  }

  add(turn: TurnRow, ordinal: number, replySeq: number): void {
    const body = encodeEndedTurn(turn, replySeq);
    this.#rows.add(turn.turnId, ordinal, body);
    this.#totals.addBytes(body.length + ENDED_BYTES);
  }

  get(turnId: string): { ordinal: number; body: string } | undefined {
    this.#rows.flush();
    const found = this.#byId.get<[number, string]>([turnId]);
    return found && { ordinal: found[0], body: found[1] };
  }

  /** Those whose ids are smaller, the largest first. */
  below(turnId: string, limit: number): [turnId: string, ordinal: number, body: string][] {
    this.#rows.flush();
    return this.#below.all([turnId, limit]);
  }

  /** Answers its delivery. */
  delete(turnId: string): string | undefined {
    const found = this.get(turnId);
    if (!found) return undefined;
    this.#delete([turnId]);
    this.#totals.addBytes(-(found.body.length + ENDED_BYTES));
    return deliveryIdIn(found.body);
  }

  flush(): void {
    this.#rows.flush();
  }
}
