import type { GatewayEntry, StoreWatcher } from "#store/store.ts";

/** How long entries wait for those before them, until these are read. */
const EARLY_MS = 50;
/** The same where nobody follows the stream: then they are not read. */
const UNWANTED_MS = 1_000;
const PAGE = 500;
/** Who was asked to tell of the stream does so for as many looks at the database. */
const ASKED_LOOKS = 5;

type GatewayTellingsParts = {
  watchers: ReadonlySet<StoreWatcher>;
  read: (after: number, limit: number) => Promise<{ entries: GatewayEntry[]; first: number; last: number }>;
  notify: (notice: "gateway" | "gatewayAsked", last: number) => void;
};

/**
 * Tells the watchers here of the gateway's stream, each entry once and in order, whoever wrote it; and other gateways, where somebody
 * follows it, how far it goes.
 */
export class GatewayTellings {
  readonly #parts: GatewayTellingsParts;
  #through = 0;
  #early: (readonly GatewayEntry[])[] = [];
  /** Others were asked since the last look. */
  #hasAsked = false;
  /** For so many looks others want to be told. */
  #asked = 0;

  constructor(parts: GatewayTellingsParts) {
    this.#parts = parts;
  }

  /** Nobody here has missed what came before. */
  begin(last: number): void {
    this.#through = last;
  }

  /** This gateway has written `count` entries. They are made only where somebody hears of them. */
  own(first: number, count: number, make: () => readonly GatewayEntry[]): void {
    const last = first + count - 1;
    if (this.#isHeard()) this.#take(make());
    else this.#through = Math.max(this.#through, last);
    if (this.#asked > 0) this.#parts.notify("gateway", last);
  }

  /** With each look at the database. */
  looked(): void {
    this.#asked = Math.max(this.#asked - 1, 0);
    this.#hasAsked = false;
    this.ask();
  }

  /** Asks other gateways to tell of what they write, if somebody follows it here. */
  ask(): void {
    if (this.#hasAsked || !this.#isWanted()) return;
    this.#hasAsked = true;
    this.#parts.notify("gatewayAsked", 0);
  }

  /** Somebody follows the stream on another gateway. */
  asked(): void {
    // What was written before this was heard was told to nobody.
    if (this.#asked === 0) this.#parts.notify("gateway", this.#through);
    this.#asked = ASKED_LOOKS;
  }

  #take(entries: readonly GatewayEntry[]): void {
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
    for (const watcher of this.#parts.watchers) watcher.gatewayEntries(news);
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
      const { entries, first } = await this.#parts.read(this.#through, PAGE);
      // What is not kept any more cannot be told.
      this.#through = Math.max(this.#through, first - 1);
      this.#take(entries);
    } catch {
      const first = this.#early[0]?.[0]?.seq;
      if (first !== undefined) this.#through = Math.max(this.#through, first - 1);
    }
    this.#takeEarly();
  }

  /** Who does not say whether it follows the stream hears of all that is written here. */
  #isHeard(): boolean {
    for (const watcher of this.#parts.watchers) if (watcher.wantsGateway?.() ?? true) return true;
    return false;
  }

  #isWanted(): boolean {
    for (const watcher of this.#parts.watchers) if (watcher.wantsGateway?.()) return true;
    return false;
  }

  /** Tells what came too early without what is before it: other gateways wrote that. */
  #passOver(): void {
    for (const entries of this.#inOrder()) {
      this.#through = Math.max(this.#through, (entries[0]?.seq ?? 1) - 1);
      this.#take(entries);
    }
  }

  #inOrder(): (readonly GatewayEntry[])[] {
    return this.#early.splice(0).sort((a, b) => (a[0]?.seq ?? 0) - (b[0]?.seq ?? 0));
  }

  #takeEarly(): void {
    for (const entries of this.#inOrder()) this.#take(entries);
  }
}
