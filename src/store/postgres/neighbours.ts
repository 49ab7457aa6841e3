import type pg from "pg";
import type { EndedAgent } from "./agent-ends.ts";
import { hearPaused } from "./beats.ts";
import type { Deltas } from "./counts.ts";
import { type Change, type Frame, refOf } from "./frame.ts";
import { readHanded } from "./handing-over.ts";
import { inboundPoll, type PolledInbound } from "./inbound-poll.ts";
import type { Heard } from "./line.ts";

type Polled = {
  isNew: boolean;
  nodes: number;
  news: number[];
  ready: boolean;
  cancelled: string[];
  compactions: string[];
  ends: EndedAgent[];
};

/** News are looked for again for so long behind the newest: one that was numbered before may be kept after it. */
const OVERLAP = 2_000;

const POLL = "select poll($1, $2, $3) as polled, poll_inbound($3) as inbound, other_counts($1) as counts";
const MISSED = `select s.ordinal, s.session_id, s.agent, s.context_bytes, s.last_seq,
    (select min(e.seq) from (select seq, at from entries where session = s.ordinal order by seq desc limit 50) as e where e.at >= $1) as from_seq
  from sessions s where s.updated_at >= $1 order by s.ordinal desc limit 5000`;

/** What other gateways on the same database do, as this one hears of it or finds it. */
export class Neighbours {
  readonly #frame: Frame;
  readonly #hearInbound: (polled: PolledInbound) => void;
  /** Ids of news that were heard, and the newest of them. */
  readonly #heard = new Set<number>();
  #newest = 0;
  /** By the wall clock. */
  #lastLook = 0;

  constructor(frame: Frame) {
    this.#frame = frame;
    this.#hearInbound = inboundPoll(frame);
  }

  /** What is there when this gateway begins is not news. */
  async begin(client: pg.Client): Promise<void> {
    const { rows } = await client.query("select coalesce(max(id), 0) as newest from news");
    this.#newest = rows[0].newest;
    const place = await client.query("select last from gateway_place");
    this.#frame.gatewayTellings.begin(place.rows[0].last);
  }

  /** Looks for what no notification told. Answers whether other gateways are there. */
  async poll(client: pg.Client): Promise<boolean> {
    const frame = this.#frame;
    if (frame.isUnsure) {
      const { lanes } = frame;
      frame.renewLanes();
      await client.query("select leave_node($1)", [lanes]);
    }
    const values = [frame.lanes, this.#newest - OVERLAP, frame.time()];
    const begun = [...frame.begun];
    const stopped = [...frame.stopped];
    const { rows } = await client.query({ name: "poll", text: POLL, values });
    const { polled, inbound, counts } = rows[0] as { polled: Polled; inbound: PolledInbound; counts: Deltas };
    // Others took this one for gone, and its counters for theirs.
    if (polled.isNew && this.#lastLook > 0) frame.isUnsure = true;
    this.#lastLook = frame.clock.now();
    frame.counts.others(counts);
    frame.ends.others(polled.ends);
    this.#hearInbound(inbound);
    const unheard = polled.news.filter((id) => !this.#heard.has(id));
    frame.gatewayTellings.looked();
    if (unheard.length > 0) await this.#readNews(client, unheard);
    if (polled.ready) for (const watcher of frame.watchers) watcher.work();
    for (const turnId of polled.cancelled) frame.shouldEnd(turnId);
    for (const turnId of stopped) if (!polled.cancelled.includes(turnId)) frame.stopped.delete(turnId);
    for (const id of polled.compactions) frame.mayBegin(id);
    for (const id of begun) if (!polled.compactions.includes(id)) frame.begun.delete(id);
    frame.gateways = 1 + polled.nodes;
    return polled.nodes > 0;
  }

  /** Nobody listened for a while: looks at what sessions were written to meanwhile. */
  async catchUp(client: pg.Client): Promise<void> {
    const since = this.#lastLook - 60_000;
    const { rows } = await client.query(MISSED, [since]);
    for (const { ordinal, session_id, agent, context_bytes, from_seq, last_seq } of rows) {
      const session = refOf([ordinal, session_id, agent, context_bytes]);
      void this.#frame.tellings.elsewhere(session, from_seq ?? last_seq, last_seq);
    }
  }

  heard({ news, changes, notices }: Heard): void {
    for (const id of news) this.#note(id);
    for (const change of changes) this.#take(change);
    const { watchers, gatewayTellings, handingOver } = this.#frame;
    for (const [notice, of] of notices) {
      if (notice === "gateway") void gatewayTellings.elsewhere(of as number);
      if (notice === "gatewayAsked") gatewayTellings.asked();
      if (notice === "handed") for (const text of of as readonly string[]) handingOver.handed(...readHanded(text));
      if (notice === "paused") for (const text of of as readonly string[]) hearPaused(this.#frame, text);
      for (const watcher of watchers) {
        if (notice === "beat") watcher.beat();
        if (notice === "announcement") watcher.announcement();
        if (notice === "keys") watcher.keysChanged?.();
        if (notice === "textsAsked") watcher.textsAsked?.(of as readonly string[]);
        if (notice === "textsPut") watcher.textsPut?.(of as readonly string[]);
      }
    }
  }

  async #readNews(client: pg.Client, ids: readonly number[]): Promise<void> {
    const { rows } = await client.query({ name: "news", text: "select read_news($1) as news", values: [ids] });
    for (const [id, changes] of rows[0].news as [number, string][]) {
      if (this.#heard.has(id)) continue;
      this.#note(id);
      for (const change of JSON.parse(changes) as Change[]) this.#take(change);
    }
  }

  #note(id: number): void {
    this.#heard.add(id);
    this.#newest = Math.max(this.#newest, id);
    if (this.#heard.size < 2 * OVERLAP) return;
    for (const old of this.#heard) if (old < this.#newest - OVERLAP) this.#heard.delete(old);
  }

  #take(change: Change): void {
    const { watchers, tellings } = this.#frame;
    switch (change[0]) {
      case "e": {
        const [, ordinal, sessionId, agent, contextBytes, from, through] = change;
        if (through >= from) void tellings.elsewhere(refOf([ordinal, sessionId, agent, contextBytes]), from, through);
        break;
      }
      case "d": {
        const [, ordinal, sessionId, agent, contextBytes, seq, at] = change;
        tellings.deleted(refOf([ordinal, sessionId, agent, contextBytes]), { seq, at });
        break;
      }
      case "c":
        this.#frame.shouldEnd(change[1]);
        break;
      case "p":
        this.#frame.mayBegin(change[1]);
        break;
      case "w":
        for (const watcher of watchers) watcher.work();
        break;
    }
  }
}
