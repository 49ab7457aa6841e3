import type { LanguageModelV3Message, LanguageModelV3Prompt } from "@ai-sdk/provider";
import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import { abortSignalOf, type StopSignal } from "#kit/stop-signal.ts";
import type { Tool } from "#tools/tool.ts";
import type { Chunk, Used } from "../backend.ts";
import { keptBack, verdictOf } from "../breaker.ts";
import { ChunkQueue, type ChunkSource } from "../outbound/chunk-queue.ts";
import { untold } from "../untold.ts";
import type { Exchange } from "./exchange.ts";
import { type Again, noneLeft, RequestRefused } from "./failures.ts";
import type { Models, OpenModel } from "./models.ts";
import { Spending } from "./spending.ts";
import { askOnce, type PlainText, type Step, type StepHearer } from "./step.ts";
import { answerCalls, portable, toolsForModel } from "./tool-calls.ts";
import { NOTHING } from "./usage.ts";

/** Once tools were called, the turn cannot be begun anew: a model that fails then is asked again here. */
const TRIES = 3;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
const LATE = "the model did not begin its reply in time";

/** What is asked, of whom, and how often. */
export type Asking = {
  /** The models by name, in the order in which they are tried. */
  names: readonly string[];
  /** The one that the turn asked for by name. */
  wanted: string | undefined;
  steps: number;
  /** Waits for what is not the models' doing. */
  aside<T>(work: Promise<T>): Promise<T>;
  mayRetry(): boolean;
  /** Who is asked when the model gave no sign for too long: true where that ends its call, and not the turn. */
  whenLate(goesOn: () => boolean): void;
  tools(): readonly Tool[] | Promise<readonly Tool[]>;
  prompt(tools: readonly Tool[]): LanguageModelV3Prompt | Promise<LanguageModelV3Prompt>;
};

type Parts = { models: Models; clock: Clock };

/** Has models answer, piece by piece. */
export const reply = (parts: Parts, asking: Asking, signal: StopSignal): AsyncIterableIterator<Chunk> =>
  new Reply(parts, asking, signal).chunks;

class Reply implements ChunkSource {
  readonly chunks = new ChunkQueue(this);
  readonly #parts: Parts;
  readonly #asking: Asking;
  readonly #signal: StopSignal;
  /** Which of the models is asked. */
  #at = 0;
  #exchange: Exchange | undefined;
  #isFull = false;
  #stopped: { reason: unknown } | undefined;
  #endPause: (() => void) | undefined;
  readonly #spending = new Spending();
  /** What was said in this step, in code units, and whether anything was in an earlier one. */
  #said = 0;
  #hasSpoken = false;
  #hasActed = false;
  #isEstimated = false;
  /** The model that answers, as soon as it does: what is told before would pass for a sign of life. */
  #untold: string | undefined;

  constructor(parts: Parts, asking: Asking, signal: StopSignal) {
    this.#parts = parts;
    this.#asking = asking;
    this.#signal = signal;
  }

  begin(): void {
    if (this.#signal.aborted) {
      this.chunks.fail(this.#signal.reason);
      return;
    }
    this.#signal.addEventListener("abort", this.#onAbort, { once: true });
    if (this.#asking.names.length > 1) this.#asking.whenLate(this.#leaveLate);
    this.#answer().then(
      () => this.#end(undefined),
      (error: unknown) => this.#end({ error }),
    );
  }

  full(isFull: boolean): void {
    this.#isFull = isFull;
    this.#exchange?.hold(isFull);
  }

  leave(): void {
    this.#stop(new Error("nobody reads the reply any more"));
  }

  used(): Used {
    return this.#exchange ? this.#spending.soFar(this.#exchange.told) : this.#spending.booked;
  }

  /** One that hangs before it has said anything, where others can be asked: they are, though it was the last one that hangs. */
  readonly #leaveLate = (): boolean => {
    if (!this.#exchange || this.#said > 0) return false;
    this.#exchange.abort(new BackendError(LATE, { retryable: true, isLate: true }));
    return true;
  };

  readonly #onAbort = (): void => {
    this.#tellUsed();
    this.chunks.fail(this.#signal.reason);
    this.#stop(this.#signal.reason);
  };

  #stop(reason: unknown): void {
    this.#stopped = { reason };
    this.#exchange?.abort(reason);
    this.#endPause?.();
  }

  #end(failed: { error: unknown } | undefined): void {
    this.#signal.removeEventListener("abort", this.#onAbort);
    if (failed) {
      this.#tellUsed();
      this.chunks.fail(failed.error);
    } else this.chunks.end();
  }

  async #answer(): Promise<void> {
    const { steps, tools: toolsOf } = this.#asking;
    // Nothing that is there already is waited for: each wait costs as much as what it waits for.
    const known = steps > 1 ? toolsOf() : [];
    const tools = known instanceof Promise ? await known : known;
    const made = this.#asking.prompt(tools);
    const prompt = made instanceof Promise ? await made : made;
    const told: LanguageModelV3Message[] = [];
    for (let step = 1; ; step++) {
      const isLast = step >= steps;
      this.#spending.begin(prompt, told);
      const { content, calls, used } = await this.#ask(prompt, told, tools, isLast);
      this.#spending.bookStep(used);
      this.#hasSpoken ||= this.#said > 0;
      this.#said = 0;
      this.#isEstimated ||= !used;
      if (this.#isEstimated && calls.length === 0) this.chunks.push(untold("the provider", "an estimate"));
      this.chunks.push({ usage: this.#spending.booked });
      if (calls.length === 0) return;
      if (isLast)
        throw new BackendError(
          `the model was asked ${timesOf(steps)}, the most that is allowed, and still calls tools`,
        );
      this.#hasActed = true;
      told.push({ role: "assistant", content }, await this.#answerCalls(tools, calls, step + 1 >= steps));
      if (this.#stopped) throw this.#stopped.reason;
    }
  }

  #answerCalls(tools: readonly Tool[], calls: Step["calls"], isLast: boolean) {
    return answerCalls(tools, calls, isLast, abortSignalOf(this.#signal), this.#tellRefused);
  }

  /** Asks the model whose turn it is, and where that cannot be used and has said nothing yet, the next. */
  async #ask(
    prompt: LanguageModelV3Prompt,
    told: LanguageModelV3Message[],
    tools: readonly Tool[],
    isLast: boolean,
  ): Promise<Step> {
    const { names, wanted, aside } = this.#asking;
    let worthAnother: BackendError | undefined;
    for (let tries = 1; ; ) {
      const name = names[this.#at] as string;
      const next = names[this.#at + 1];
      try {
        const open = this.#parts.models.open(name);
        const model = open instanceof Promise ? await aside(open) : open;
        if (this.#stopped) throw this.#stopped.reason;
        this.#spending.price = model.settings.price;
        this.#untold = name === wanted ? undefined : name;
        const step = await this.#askModel(model, told.length === 0 ? prompt : [...prompt, ...told], tools, isLast);
        this.#tellModel();
        return step;
      } catch (error) {
        if (error instanceof BackendError) error.model = name;
        if (this.#stopped || this.#said > 0 || !(error instanceof BackendError)) throw error;
        if (error.retryable) worthAnother ??= error;
        if (next !== undefined && !(error instanceof RequestRefused)) {
          const detail = { model: name, reason: error.message, next };
          this.chunks.push({ note: { name: "model.unavailable", detail }, anew: true });
          this.#at++;
          told.splice(0, told.length, ...portable(told));
        } else if (!this.#hasActed) throw this.#noneLeft(error, worthAnother ?? error);
        else if (!(await this.#mayTryAgain(error, tries++))) throw this.#noneLeft(error, LASTING);
      }
    }
  }

  #noneLeft(error: BackendError, again: Again): BackendError {
    const { model, message: reason } = error;
    if (this.#at > 0) this.chunks.push({ note: { name: "model.unavailable", detail: { model, reason } } });
    return noneLeft(error, this.#at + 1, again);
  }

  async #askModel(
    model: OpenModel,
    prompt: LanguageModelV3Prompt,
    tools: readonly Tool[],
    isLast: boolean,
  ): Promise<Step> {
    const { breaker, settings, provider } = model;
    const wait = breaker.wait();
    if (wait > 0) throw keptBack("the model", wait);
    const plain: PlainText = new Map();
    let [last, pieces]: [string | undefined, string[] | undefined] = [undefined, undefined];
    const text = (text: string, block: string | undefined) => {
      if (!pieces || block !== last) {
        pieces = plain.get(block) ?? [];
        plain.set(block, pieces);
        last = block;
      }
      pieces.push(text);
      this.#say(text);
    };
    const exchange = model.exchange({ text, alive: this.#alive });
    this.#exchange = exchange;
    if (this.#isFull) exchange.hold(true);
    const options = {
      prompt,
      providerOptions: provider.options(settings.options),
      ...(settings.maxOutputTokens !== undefined && { maxOutputTokens: settings.maxOutputTokens }),
      ...(settings.temperature !== undefined && { temperature: settings.temperature }),
      ...(tools.length > 0 && { tools: toolsForModel(tools) }),
      ...(tools.length > 0 && isLast && provider.canRefuseTools && { toolChoice: { type: "none" } as const }),
    };
    try {
      const step = await askOnce(model, options, exchange, plain, this.#hearer);
      breaker.tell("answered");
      return step;
    } catch (error) {
      this.#spending.bookSoFar(exchange.told);
      breaker.tell(verdictOf(error, this.#signal), error instanceof BackendError ? error.retryAfterMs : undefined);
      throw error;
    } finally {
      this.#exchange = undefined;
    }
  }

  #tellUsed(): void {
    const usage = this.used();
    if (usage !== NOTHING) this.chunks.push({ usage });
  }

  #tellModel(): void {
    if (this.#untold !== undefined) this.chunks.push({ model: this.#untold });
    this.#untold = undefined;
  }

  #say(text: string): void {
    if (this.#untold !== undefined) this.#tellModel();
    if (this.#said === 0 && this.#hasSpoken) this.chunks.say("\n\n");
    this.chunks.say(text);
    this.#said += text.length;
    this.#spending.write(text.length);
  }

  readonly #hearer: StepHearer = {
    text: (text) => this.#say(text),
    unseen: (text) => this.#spending.write(text.length),
  };

  readonly #tellRefused = (tool: string, reason: string): void =>
    this.chunks.push({ note: { name: "tool.called", detail: { tool, ms: 0, ok: false, reason } } });

  readonly #alive = (): void => this.chunks.push(ALIVE);

  async #mayTryAgain({ retryable, retryAfterMs }: BackendError, tries: number): Promise<boolean> {
    const pause = retryAfterMs ?? FIRST_PAUSE_MS * 2 ** (tries - 1) * (0.5 + Math.random() / 2);
    if (!retryable || tries >= TRIES || pause > LONGEST_PAUSE_MS || !this.#asking.mayRetry()) return false;
    await new Promise<void>((resolve) => {
      const stopTimer = this.#parts.clock.after(pause, resolve);
      this.#endPause = () => {
        stopTimer();
        resolve();
      };
    });
    if (this.#stopped) throw this.#stopped.reason;
    return true;
  }
}

const timesOf = (steps: number): string => (steps === 1 ? "once" : `${steps} times`);

const ALIVE: Chunk = { alive: true };
/** The turn cannot be begun anew. */
const LASTING: Again = { retryable: false, retryAfterMs: undefined };
