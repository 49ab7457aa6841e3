import type { GatewayEntry, StoreWatcher } from "#store/store.ts";

/** How long entries wait for those before them, until these are read. */
const EARLY_MS = 50;
/** The same where nobody follows the stream: then they are not read. */
const UNWANTED_MS = 1_000;
const PAGE = 500;

/** Tells the watchers here of the gateway's stream, each entry once and in order, whoever wrote it. */
export class GatewayTellings {
  readonly #watchers: ReadonlySet<StoreWatcher>;
  readonly #read: (after: number, limit: number) => Promise<{ entries: GatewayEntry[]; first: number; last: number }>;
  #through = 0;
  #early: (readonly GatewayEntry[])[] = [];

  constructor(
    watchers: ReadonlySet<StoreWatcher>,
    read: (after: number, limit: number) => Promise<{ entries: GatewayEntry[]; first: number; last: number }>,
  ) {
    this.#watchers = watchers;
    this.#read = read;
  }

  /** Nobody here has missed what came before. */
  begin(last: number): void {
    this.#through = last;
  }

  entries(entries: readonly GatewayEntry[]): void {
    const first = entries[0]?.seq;
    const last = entries.at(-1)?.seq;
    if (first === undefined || last === undefined || last <= this.#through) return;
    if (first > this.#through + 1) {
      this.#early.push(entries);
      if (this.#early.length > 1) return;
      if (this.#isWanted()) setTimeout(() => void this.#catchUp(), EARLY_MS);
      else setTimeout(() => this.#passOver(), UNWANTED_MS);
      return;
    }
    const news = entries.filter(({ seq }) => seq > this.#through);
    this.#through = last;
    for (const watcher of this.#watchers) watcher.gatewayEntries(news);
    this.#takeEarly();
  }

  /** Another gateway has written up to `last`. */
  async elsewhere(last: number): Promise<void> {
    if (last <= this.#through) return;
    if (this.#isWanted()) return await this.#catchUp();
    this.#through = last;
    this.#takeEarly();
  }

  async #catchUp(): Promise<void> {
    try {
      const { entries, first } = await this.#read(this.#through, PAGE);
      // What is not kept any more cannot be told.
      this.#through = Math.max(this.#through, first - 1);
      this.entries(entries);
    } catch {
      const first = this.#early[0]?.[0]?.seq;
      if (first !== undefined) this.#through = Math.max(this.#through, first - 1);
    }
    this.#takeEarly();
  }

  #isWanted(): boolean {
    for (const watcher of this.#watchers) if (watcher.wantsGateway?.()) return true;
    return false;
  }

  /** Tells what came too early without what is before it: other gateways wrote that. */
  #passOver(): void {
    for (const entries of this.#inOrder()) {
      this.#through = Math.max(this.#through, (entries[0]?.seq ?? 1) - 1);
      this.entries(entries);
    }
  }

  #inOrder(): (readonly GatewayEntry[])[] {
    return this.#early.splice(0).sort((a, b) => (a[0]?.seq ?? 0) - (b[0]?.seq ?? 0));
  }

  #takeEarly(): void {
    for (const entries of this.#inOrder()) this.entries(entries);
  }
}
