// A new tab asks the other tabs of this browser for their token. Only pages of the same origin can receive the question and answer it.
import { identity, storedToken } from "./session.ts";

type Message = { ask: string } | { answer: string; token: string };

/** The time for which a new tab collects answers, and the maximum number of tokens that it accepts. */
const WAIT_MS = 300;
const MOST_TOKENS = 8;
const channel = new BroadcastChannel("agent-gateway");

function messageOf(data: unknown): Partial<Record<"ask" | "answer" | "token", string>> {
  const texts = Object.entries(Object(data)).filter(([, value]) => typeof value === "string");
  return Object.fromEntries(texts) as Partial<Record<string, string>>;
}

channel.addEventListener("message", ({ data }) => {
  const { ask } = messageOf(data);
  // Only a tab that is signed in answers, not one that was offered an identity.
  const token = identity.peek() && storedToken();
  if (ask !== undefined && token !== undefined) channel.postMessage({ answer: ask, token } satisfies Message);
});

/**
 * The tokens of the other tabs that are signed in, each once. Tabs may have different identities, so the first answer does not decide. `late` is
 * called once if a busy tab answers after the wait.
 */
export function askOtherTabs(late: () => void): Promise<string[]> {
  const ask = crypto.getRandomValues(new Uint32Array(4)).join("-");
  const tokens = new Set<string>();
  const hear = ({ data }: MessageEvent) => {
    const { answer, token } = messageOf(data);
    if (answer === ask && token !== undefined && tokens.size < MOST_TOKENS) tokens.add(token);
  };
  const hearLate = ({ data }: MessageEvent) => {
    if (messageOf(data).answer !== ask) return;
    channel.removeEventListener("message", hearLate);
    late();
  };
  channel.addEventListener("message", hear);
  channel.postMessage({ ask } satisfies Message);
  return new Promise((resolve) => {
    setTimeout(() => {
      channel.removeEventListener("message", hear);
      if (tokens.size === 0) channel.addEventListener("message", hearLate);
      resolve([...tokens]);
    }, WAIT_MS);
  });
}
