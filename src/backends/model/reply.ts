import type { LanguageModelV3Message, LanguageModelV3Prompt } from "@ai-sdk/provider";
import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import { abortSignalOf, type StopSignal } from "#kit/stop-signal.ts";
import type { Tool } from "#tools/tool.ts";
import type { BackendTurn, Chunk, Chunks, Used } from "../backend.ts";
import { usageUnknown } from "../token-counts.ts";
import { type Again, noneLeft, RequestRefused } from "./failures.ts";
import type { Models, OpenModel } from "./providers.ts";
import { Spending, tokensOf, tokensOfTools } from "./spending.ts";
import { askOnce, type Step } from "./step.ts";
import { answerCalls, portable, toolsForModel } from "./tool-calls.ts";
import { sizeOf, type ToolLimits, tooManyMessages } from "./tool-limits.ts";

/** The number of tries of a model after tools were called: the turn cannot start again then, so the model is asked again here. */
const TRIES = 3;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
const LATE = "the model did not begin its reply in time";

/** The parts of a turn that a request needs in addition to its prompt. */
export type AskedTurn = Pick<BackendTurn, "model" | "watch" | "mayRetry" | "tools" | "requireBudget">;

/** A request to the models. */
type Asking = {
  turn: AskedTurn;
  /** The names of the models, in the order in which they are tried. */
  names: readonly string[];
  steps: number;
  prompt(tools: readonly Tool[]): LanguageModelV3Prompt | Promise<LanguageModelV3Prompt>;
};

type Parts = { models: Models; limits: ToolLimits; clock: Clock };

/** Asks models for a reply, and yields it piece by piece. */
export function reply(parts: Parts, asking: Asking, signal: StopSignal): Chunks {
  const all = new Reply(parts, asking, signal);
  return Object.assign(all.chunks(), { used: () => all.used() });
}

class Reply {
  readonly #parts: Parts;
  readonly #asking: Asking;
  readonly #signal: StopSignal;
  /** The index of the model that is asked. */
  #at = 0;
  /** Aborts the current call. */
  #call: AbortController | undefined;
  #endPause: (() => void) | undefined;
  readonly #spending = new Spending();
  /** The length of this step's text in code units; the next field is true if an earlier step had text. */
  #said = 0;
  #hasSpoken = false;
  #hasActed = false;
  #hasAsked = false;
  #isEstimated = false;
  /**
   * The model that answers, if it is not the wanted one, until its first text. An earlier report would count as a sign of life.
   */
  #newModel: string | undefined;

  constructor(parts: Parts, asking: Asking, signal: StopSignal) {
    this.#parts = parts;
    this.#asking = asking;
    this.#signal = signal;
  }

  async *chunks(): AsyncGenerator<Chunk, void> {
    const { turn, names, steps } = this.#asking;
    this.#signal.throwIfAborted();
    this.#signal.addEventListener("abort", this.#onAbort, { once: true });
    if (names.length > 1) turn.watch.whenLate(this.#leaveLate);
    try {
      const tools = steps > 1 ? await turn.tools(this.#signal) : [];
      const prompt = await this.#asking.prompt(tools);
      const stepMessages: LanguageModelV3Message[] = [];
      const { toolMessages } = this.#parts.limits;
      let carried = 0;
      for (let step = 1; ; step++) {
        const isLast = step >= steps;
        const { content, calls, used } = yield* this.#ask(prompt, stepMessages, tools, isLast);
        this.#spending.bookStep(used);
        this.#hasSpoken ||= this.#said > 0;
        this.#said = 0;
        this.#isEstimated ||= !used;
        if (this.#isEstimated && calls.length === 0) yield usageUnknown("the provider", "an estimate");
        yield { usage: this.#spending.booked };
        if (calls.length === 0) return;
        if (isLast)
          throw new BackendError(
            `the model was asked ${steps === 1 ? "once" : `${steps} times`}, which is the maximum, and still calls tools`,
          );
        this.#hasActed = true;
        const { answer, refused } = await answerCalls(tools, calls, step + 1 >= steps, abortSignalOf(this.#signal));
        for (const call of refused) yield { note: { name: "tool.called", detail: { ms: 0, ok: false, ...call } } };
        carried += sizeOf(content) + sizeOf(answer.content);
        if (carried > toolMessages) throw tooManyMessages(toolMessages);
        stepMessages.push({ role: "assistant", content }, answer);
      }
    } catch (error) {
      throw this.#signal.aborted ? this.#signal.reason : error;
    } finally {
      this.#signal.removeEventListener("abort", this.#onAbort);
    }
  }

  used(): Used {
    return this.#spending.soFar();
  }

  readonly #onAbort = (): void => {
    this.#call?.abort(this.#signal.reason);
    this.#endPause?.();
  };

  /**
   * Ends the call of a model that hangs before its first text, if other models can be asked. This also holds for the last of
   * them.
   */
  readonly #leaveLate = (): boolean => {
    if (!this.#call || this.#said > 0) return false;
    this.#call.abort(new BackendError(LATE, { retryable: true, isLate: true }));
    return true;
  };

  /** Asks the current model. If it fails before its first text, asks the next one. */
  async *#ask(
    prompt: LanguageModelV3Prompt,
    stepMessages: LanguageModelV3Message[],
    tools: readonly Tool[],
    isLast: boolean,
  ): AsyncGenerator<Chunk, Step> {
    const { names, turn } = this.#asking;
    let worthAnother: BackendError | undefined;
    for (let tries = 1; ; ) {
      const name = names[this.#at] as string;
      const next = names[this.#at + 1];
      try {
        const { models } = this.#parts;
        const model = await turn.watch.pause(models.open(name));
        this.#newModel = name === turn.model ? undefined : name;
        const whole = stepMessages.length === 0 ? prompt : [...prompt, ...stepMessages];
        // The first request is within the reservation of the turn.
        if (this.#hasAsked && turn.requireBudget)
          await turn.requireBudget(this.used(), tokensOf(whole) + tokensOfTools(tools));
        this.#hasAsked = true;
        return yield* this.#askModel(model, whole, tools, isLast);
      } catch (error) {
        if (error instanceof BackendError) error.model = name;
        if (this.#signal.aborted || this.#said > 0 || !(error instanceof BackendError)) throw error;
        if (error.retryable) worthAnother ??= error;
        if (next !== undefined && !(error instanceof RequestRefused)) {
          const detail = { model: name, reason: error.message, next };
          yield { note: { name: "model.unavailable", detail }, restart: true };
          this.#at++;
          stepMessages.splice(0, stepMessages.length, ...portable(stepMessages));
        } else if (this.#hasActed && (await this.#mayTryAgain(error, tries++))) continue;
        else {
          const { model, message: reason } = error;
          if (this.#at > 0) yield { note: { name: "model.unavailable", detail: { model, reason } } };
          throw noneLeft(error, this.#at + 1, this.#hasActed ? LASTING : (worthAnother ?? error));
        }
      }
    }
  }

  async *#askModel(
    model: OpenModel,
    prompt: LanguageModelV3Prompt,
    tools: readonly Tool[],
    isLast: boolean,
  ): AsyncGenerator<Chunk, Step> {
    const { breaker, settings, provider } = model;
    const guarded = breaker.begin("the model", this.#signal);
    this.#spending.begin(prompt, settings.price);
    const call = new AbortController();
    this.#call = call;
    try {
      const options = {
        prompt,
        abortSignal: call.signal,
        includeRawChunks: provider.tellsUsageEarly,
        providerOptions: provider.options(settings.options),
        ...(settings.maxOutputTokens !== undefined && { maxOutputTokens: settings.maxOutputTokens }),
        ...(settings.temperature !== undefined && { temperature: settings.temperature }),
        ...(tools.length > 0 && { tools: toolsForModel(tools) }),
        ...(tools.length > 0 && isLast && provider.canRefuseTools && { toolChoice: { type: "none" } as const }),
      };
      const pieces = askOnce(model, options, this.#spending, this.#parts.limits);
      for (let next = await pieces.next(); ; next = await pieces.next()) {
        if (next.done) {
          this.#call = undefined;
          guarded.answered();
          if (this.#newModel !== undefined) yield { model: this.#newModel };
          return next.value;
        }
        const piece = next.value;
        if ("text" in piece) {
          if (this.#newModel !== undefined) yield { model: this.#newModel };
          this.#newModel = undefined;
          const isNewParagraph = this.#said === 0 && this.#hasSpoken;
          this.#said += piece.text.length;
          yield isNewParagraph ? { text: `\n\n${piece.text}` } : piece;
        } else yield piece;
      }
    } catch (error) {
      this.#spending.bookSoFar();
      throw guarded.failed(error);
    } finally {
      guarded.left();
      this.#call?.abort(LEFT);
      this.#call = undefined;
    }
  }

  async #mayTryAgain({ retryable, retryAfterMs }: BackendError, tries: number): Promise<boolean> {
    const pause = retryAfterMs ?? FIRST_PAUSE_MS * 2 ** (tries - 1) * (0.5 + Math.random() / 2);
    if (!retryable || tries >= TRIES || pause > LONGEST_PAUSE_MS || !this.#asking.turn.mayRetry()) return false;
    await new Promise<void>((resolve) => {
      const stopTimer = this.#parts.clock.after(pause, resolve);
      this.#endPause = () => {
        stopTimer();
        resolve();
      };
    });
    this.#signal.throwIfAborted();
    return true;
  }
}

const LEFT = new Error("nobody reads the reply any more");
/** The turn cannot start again. */
const LASTING: Again = { retryable: false, retryAfterMs: undefined };
