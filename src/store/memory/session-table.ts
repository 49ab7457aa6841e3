import { randomInt } from "node:crypto";
import type { MoreUsage } from "#store/store.ts";
import { IdIndex, placeOfSlot, slotOfPlace } from "./id-index.ts";
import { NONE } from "./log-arena.ts";
import { offHeap } from "./off-heap.ts";
import { PackedWriter } from "./packed.ts";
import { PackedReader } from "./packed-reader.ts";
import type { QueueRow } from "./rows.ts";
import { FIELD, FIELDS, type SessionParts, SessionRow } from "./session-row.ts";
import { SlotTable } from "./slot-table.ts";
import { TextHeap } from "./text-heap.ts";

/** Large pages: what is not touched of one takes no memory, and few of them stay in the caches. */
const PAGE_ROWS = 8192;
/** Of cached and reasoning tokens and costs, where a session has any. */
const MORE_BYTES = 120;
const NOBODY: readonly QueueRow[] = [];

/** Rows from `used` on were never taken; `free` ones are to be taken again. */
type Page = { values: Float64Array; free: number[]; used: number; live: number };
type Names = { sessionId: string; channel: string; userId: string };

/** All sessions by their id and by their slot, which another session may get when one is gone. */
export class SessionTable implements SessionParts {
  readonly #pages: (Page | undefined)[] = [];
  /** Pages that have room. */
  readonly #roomy: number[] = [];
  readonly #index = new IdIndex(randomInt(1, 2 ** 32));
  readonly #names = new TextHeap();
  readonly #writer = new PackedWriter();
  readonly #queues = new SlotTable<readonly QueueRow[]>();
  readonly #more = new Map<number, MoreUsage>();
  readonly #agents: string[] = [];
  readonly #agentIndex = new Map<string, number>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** What they hold beside their records. */
  get bytes(): number {
    return this.#more.size * MORE_BYTES;
  }

  get(sessionId: string): SessionRow | undefined {
    const found = this.#index.find(sessionId, (place) => this.#isNamed(slotOfPlace(place), sessionId));
    return found && this.#view(slotOfPlace(found), sessionId);
  }

  at(slot: number): SessionRow {
    return this.#view(slot, undefined);
  }

  /** Adds one whose id is not there. */
  add(session: Names & { agent: string; ordinal: number; createdAt: number }): SessionRow {
    const slot = this.#takeSlot();
    const { values } = this.#pages[Math.floor(slot / PAGE_ROWS)] as Page;
    const at = (slot % PAGE_ROWS) * FIELDS;
    values.fill(0, at, at + FIELDS);
    values[at + FIELD.ordinal] = session.ordinal;
    values[at + FIELD.createdAt] = session.createdAt;
    values[at + FIELD.updatedAt] = session.createdAt;
    values[at + FIELD.chunk] = NONE;
    values[at + FIELD.agent] = this.#indexOfAgent(session.agent);
    this.#writer.begin();
    this.#writer.text(session.sessionId);
    this.#writer.text(session.channel);
    this.#writer.text(session.userId);
    values[at + FIELD.names] = this.#names.add(this.#writer.bytes, this.#writer.length);
    this.#index.add(session.sessionId, placeOfSlot(slot));
    this.#size++;
    return new SessionRow(this, values, at, slot, session.sessionId);
  }

  /** Nothing of the row may be read from then on. */
  delete(row: SessionRow): void {
    const { slot, sessionId } = row;
    const index = Math.floor(slot / PAGE_ROWS);
    const page = this.#pages[index] as Page;
    const at = (slot % PAGE_ROWS) * FIELDS;
    this.#index.delete(sessionId, placeOfSlot(slot));
    this.#names.delete(page.values[at + FIELD.names] as number);
    this.#queues.delete(slot);
    this.#more.delete(slot);
    page.values[at + FIELD.ordinal] = 0;
    if (page.live === PAGE_ROWS) this.#roomy.push(index);
    page.free.push(slot % PAGE_ROWS);
    page.live--;
    this.#size--;
    if (page.live === 0 && this.#roomy.length > 2) this.#dropPage(index);
  }

  agentOf(index: number): string {
    return this.#agents[index] as string;
  }

  namesAt(place: number): Names {
    const { bytes, at } = this.#names.read(place);
    const reader = new PackedReader(bytes, at);
    return { sessionId: reader.text(), channel: reader.text(), userId: reader.text() };
  }

  queueOf(slot: number): readonly QueueRow[] {
    return this.#queues.get(slot) ?? NOBODY;
  }

  setQueue(slot: number, queue: readonly QueueRow[]): void {
    if (queue.length === 0) this.#queues.delete(slot);
    else this.#queues.set(slot, queue);
  }

  moreOf(slot: number): MoreUsage | undefined {
    return this.#more.size === 0 ? undefined : this.#more.get(slot);
  }

  setMore(slot: number, more: MoreUsage | undefined): void {
    if (more) this.#more.set(slot, more);
  }

  #view(slot: number, sessionId: string | undefined): SessionRow {
    const { values } = this.#pages[Math.floor(slot / PAGE_ROWS)] as Page;
    return new SessionRow(this, values, (slot % PAGE_ROWS) * FIELDS, slot, sessionId);
  }

  #isNamed(slot: number, sessionId: string): boolean {
    const { values } = this.#pages[Math.floor(slot / PAGE_ROWS)] as Page;
    const { bytes, at } = this.#names.read(values[(slot % PAGE_ROWS) * FIELDS + FIELD.names] as number);
    return new PackedReader(bytes, at).isText(sessionId);
  }

  #takeSlot(): number {
    let index = this.#roomy.at(-1);
    if (index === undefined) {
      const gap = this.#pages.indexOf(undefined);
      index = gap < 0 ? this.#pages.length : gap;
      this.#pages[index] = newPage();
      this.#roomy.push(index);
    }
    const page = this.#pages[index] as Page;
    const row = page.free.pop() ?? page.used++;
    page.live++;
    if (page.live === PAGE_ROWS) this.#roomy.pop();
    return index * PAGE_ROWS + row;
  }

  #dropPage(index: number): void {
    this.#pages[index] = undefined;
    this.#roomy.splice(this.#roomy.indexOf(index), 1);
  }

  #indexOfAgent(agent: string): number {
    let index = this.#agentIndex.get(agent);
    if (index === undefined) {
      index = this.#agents.push(agent) - 1;
      this.#agentIndex.set(agent, index);
    }
    return index;
  }
}

const newPage = (): Page => ({
  values: new Float64Array(offHeap(PAGE_ROWS * FIELDS * 8)),
  free: [],
  used: 0,
  live: 0,
});
