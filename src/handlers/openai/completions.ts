import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import { type Earlier, earlierAsContext, instructionsTold } from "#core/sessions/history.ts";
import { placeOfChat, type SessionPlace } from "#core/sessions/sessions.ts";
import { failureOf, isEnded } from "#core/turns/turns.ts";
import type { OpenAiHandlers } from "#generated/openai-handlers.ts";
import type { ChatCompletionChunk, ChatMessage } from "#generated/rest-types.ts";
import { sleep } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import type { Turn } from "#store/store.ts";
import { findAgent } from "./agent-models.ts";
import { chunksOf, completionOf, createChunks } from "./present.ts";

const CHANNEL = "openai";
/** A turn that fails sooner than this, and before its first piece, is answered by a status. Then the stream begins, so that nobody thinks it dead. */
const FIRST_PIECE_MS = 10_000;

export function completions(core: Core): Pick<OpenAiHandlers<CallContext>, "completions.create"> {
  return {
    "completions.create": async ({ body }, ctx) => {
      const { agent, model } = findAgent(core, body.model);
      core.checkNames("invalid-request", { user: body.user, model });
      const conversation = conversationOf(body.messages);
      const place = placeFor(core, agent.name, body.user ?? undefined, ctx);
      const { earlier } = conversation;
      const context = body.user == null ? earlierAsContext(earlier) : await contextOf(core, place, earlier);
      const { turn, replayed } = await core.turns.start({
        place,
        text: conversation.text,
        context,
        model,
        surface: "rest",
        caller: ctx.caller.name,
        hops: ctx.hops,
        idempotency: ctx.idempotency,
        delivery: ctx.delivery(),
        waitMs: body.stream ? undefined : core.replyWaitMs,
        streamed: body.stream === true,
        callerSignal: () => ctx.signal,
      });
      if (body.stream) {
        const includeUsage = body.stream_options?.include_usage === true;
        return { as: "events", body: await begin(core, turn, body.model, includeUsage, ctx), replayed };
      }
      if (!isEnded(turn)) throw stillRunning(turn, replayed);
      if (turn.status !== "completed") throw failureOf(turn, replayed);
      return { as: "completed", body: completionOf(turn, body.model), replayed };
    },
  };
}

function placeFor({ clock }: Core, agent: string, userId: string | undefined, ctx: CallContext): SessionPlace {
  return placeOfChat({ agent, userId, channel: CHANNEL }, ctx.caller.name, clock.now());
}

/** The earlier messages for a turn. An existing session knows them: it gets only instructions that differ from the last ones. */
async function contextOf(
  { store }: Core,
  { sessionId }: SessionPlace,
  earlier: Conversation["earlier"],
): Promise<string | undefined> {
  if (earlier.length === 0) return undefined;
  if (!(await store.getSession(sessionId))) return beginningOf(earlier);
  const instructions = earlier.filter(({ role }) => role === "system");
  if (instructions.length === 0) return undefined;
  const wanted = beginningOf(instructions);
  return wanted === earlierAsContext(await instructionsTold(store, sessionId)) ? undefined : wanted;
}

function stillRunning({ turnId }: Turn, replayed: boolean): GatewayError {
  const where = `The turn ${turnId} goes on; GET /api/v1/turns/${turnId} has its reply.`;
  return new GatewayError("turn-running", where, { turnId, replayed });
}

/** A turn's chunks, once there is one or it has lasted. */
async function begin(
  { followTurn, clock, replyWaitMs }: Core,
  turn: Turn,
  model: string,
  includeUsage: boolean,
  { signal }: CallContext,
): Promise<AsyncIterableIterator<ChatCompletionChunk>> {
  const chunks = createChunks(turn, model, includeUsage);
  const steps = followTurn(turn, undefined, chunks.of);
  const first = steps.next();
  const waited = new AbortController();
  const lasted = sleep(clock, Math.min(FIRST_PIECE_MS, replyWaitMs), signal, waited.signal);
  await Promise.race([first, lasted]).finally(() => waited.abort());
  return chunksOf(chunks.begin, first, steps);
}

/** A request's conversation: the message that starts a turn, and the earlier messages. */
type Conversation = { text: string; earlier: readonly Earlier[] };

type Messages = readonly ChatMessage[];

/** The last message of the user, and all others before it: instructions that stand behind it, too, as some clients put them there. */
function conversationOf(messages: Messages): Conversation {
  const last = messages.findLastIndex(({ role }) => role === "user");
  if (last < 0) throw invalid("/messages", "messages has none of role user.");
  const behind = messages.findLastIndex(({ role }) => role === "assistant");
  if (behind > last)
    throw invalid(
      `/messages/${behind}/role`,
      `messages[${behind}].role is assistant, and none of role user follows it.`,
    );
  const text = textOf(messages[last] as ChatMessage);
  if (text === "") throw invalid(`/messages/${last}/content`, `messages[${last}].content is empty.`);
  return { text, earlier: messages.flatMap((message, n) => (n === last ? [] : earlierFrom(message))) };
}

function invalid(pointer: string, detail: string): GatewayError {
  return new GatewayError("invalid-request", detail, { errors: [{ pointer, message: detail }] });
}

function textOf({ content }: ChatMessage): string {
  if (typeof content === "string") return content;
  return (content ?? []).map(({ text }) => text).join("\n");
}

function earlierFrom(message: ChatMessage): Earlier[] {
  const text = textOf(message);
  if (text === "") return [];
  const { role } = message;
  return [{ role: role === "developer" ? "system" : role, text }];
}

/** The most text of earlier messages that begins a session that goes on: it counts for no compaction. */
const BEGINNING_CHARACTERS = 64 * 1024;

/** The earlier messages that begin such a session: the instructions, and the newest of the rest that fit. */
function beginningOf(earlier: readonly Earlier[]): string | undefined {
  const isTold = ({ role }: Earlier): boolean => role === "system";
  const wanted = [...earlier.filter(isTold), ...earlier.filter((one) => !isTold(one)).reverse()];
  let left = BEGINNING_CHARACTERS;
  const tooMuch = wanted.findIndex(({ text }) => {
    left -= text.length;
    return left < 0;
  });
  const kept = new Set(tooMuch < 0 ? wanted : wanted.slice(0, tooMuch));
  return earlierAsContext(earlier.filter((one) => kept.has(one)));
}
