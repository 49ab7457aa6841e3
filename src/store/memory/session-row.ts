import type { MoreUsage } from "#store/store.ts";
import type { QueueRow } from "./rows.ts";

/** The numbers of a session, in the order in which its record holds them. */
export const FIELD = {
  ordinal: 0,
  createdAt: 1,
  updatedAt: 2,
  lastSeq: 3,
  messageCount: 4,
  turnsQueued: 5,
  input: 6,
  output: 7,
  contextBytes: 8,
  compactedCount: 9,
  chunk: 10,
  agent: 11,
  names: 12,
  head: 13,
  erased: 14,
} as const;
export const FIELDS = 15;

/** What a row asks its table for. */
export type SessionParts = {
  agentOf(index: number): string;
  namesAt(place: number): { sessionId: string; channel: string; userId: string };
  queueOf(slot: number): readonly QueueRow[];
  setQueue(slot: number, queue: readonly QueueRow[]): void;
  moreOf(slot: number): MoreUsage | undefined;
  setMore(slot: number, more: MoreUsage | undefined): void;
};

/**
 * A session as the memory engine holds it: a view of its record, which several may look at. The records lie outside the JavaScript
 * heap. A million objects with a dozen fields cost each full collection a third of a second, and each turn the caches' patience.
 */
export class SessionRow {
  readonly slot: number;
  readonly ordinal: number;
  readonly #values: Float64Array;
  readonly #at: number;
  readonly #parts: SessionParts;
  #sessionId: string | undefined;

  constructor(parts: SessionParts, values: Float64Array, at: number, slot: number, sessionId: string | undefined) {
    this.#parts = parts;
    this.#values = values;
    this.#at = at;
    this.slot = slot;
    this.ordinal = values[at] as number;
    this.#sessionId = sessionId;
  }

  /** Erased meanwhile: nothing else of it may be read any more. */
  get gone(): boolean {
    return this.#values[this.#at + FIELD.ordinal] !== this.ordinal;
  }

  get sessionId(): string {
    this.#sessionId ??= this.#names().sessionId;
    return this.#sessionId;
  }
  get channel(): string {
    return this.#names().channel;
  }
  get userId(): string {
    return this.#names().userId;
  }
  get agent(): string {
    return this.#parts.agentOf(this.#get(FIELD.agent));
  }
  get createdAt(): number {
    return this.#get(FIELD.createdAt);
  }
  get updatedAt(): number {
    return this.#get(FIELD.updatedAt);
  }
  set updatedAt(value: number) {
    this.#set(FIELD.updatedAt, value);
  }
  /** The `seq` of its newest journal entry. */
  get lastSeq(): number {
    return this.#get(FIELD.lastSeq);
  }
  set lastSeq(value: number) {
    this.#set(FIELD.lastSeq, value);
  }
  get messageCount(): number {
    return this.#get(FIELD.messageCount);
  }
  set messageCount(value: number) {
    this.#set(FIELD.messageCount, value);
  }
  get turnsQueued(): number {
    return this.#get(FIELD.turnsQueued);
  }
  set turnsQueued(value: number) {
    this.#set(FIELD.turnsQueued, value);
  }
  get input(): number {
    return this.#get(FIELD.input);
  }
  set input(value: number) {
    this.#set(FIELD.input, value);
  }
  get output(): number {
    return this.#get(FIELD.output);
  }
  set output(value: number) {
    this.#set(FIELD.output, value);
  }
  /** Most sessions have none, and no place for it. */
  get more(): MoreUsage | undefined {
    return this.#parts.moreOf(this.slot);
  }
  set more(value: MoreUsage | undefined) {
    this.#parts.setMore(this.slot, value);
  }
  get contextBytes(): number {
    return this.#get(FIELD.contextBytes);
  }
  set contextBytes(value: number) {
    this.#set(FIELD.contextBytes, value);
  }
  get compactedCount(): number {
    return this.#get(FIELD.compactedCount);
  }
  set compactedCount(value: number) {
    this.#set(FIELD.compactedCount, value);
  }
  /** The oldest chunk of its log, once it has any. */
  get head(): number {
    return this.#get(FIELD.head);
  }
  set head(value: number) {
    this.#set(FIELD.head, value);
  }
  /** The `seq` of its oldest entry that is kept, or of the next to come. What is before it in its chunk was erased. */
  get firstSeq(): number {
    return this.#get(FIELD.erased) + 1;
  }
  set firstSeq(value: number) {
    this.#set(FIELD.erased, value - 1);
  }
  /** The newest chunk of its log. */
  get chunk(): number {
    return this.#get(FIELD.chunk);
  }
  set chunk(value: number) {
    this.#set(FIELD.chunk, value);
  }
  /** Unfinished turns and waiting compactions in order; the first may be running. */
  get queue(): readonly QueueRow[] {
    return this.#parts.queueOf(this.slot);
  }
  set queue(queue: readonly QueueRow[]) {
    this.#parts.setQueue(this.slot, queue);
  }

  #get(field: number): number {
    return this.#values[this.#at + field] as number;
  }

  #set(field: number, value: number): void {
    this.#values[this.#at + field] = value;
  }

  #names() {
    return this.#parts.namesAt(this.#get(FIELD.names));
  }
}
