// A new tab asks the other tabs of this browser for their token. Only pages of the same origin can hear and answer.
import { identity, storedToken } from "./session.ts";

type Message = { ask: string } | { answer: string; token: string };

/** The time that a new tab waits for an answer before it shows the sign-in page. */
const WAIT_MS = 300;
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

/** The token of another tab that is signed in; undefined if none answers in time. */
export function askOtherTabs(): Promise<string | undefined> {
  const ask = crypto.getRandomValues(new Uint32Array(4)).join("-");
  return new Promise((resolve) => {
    const end = (token?: string) => {
      channel.removeEventListener("message", hear);
      resolve(token);
    };
    const hear = ({ data }: MessageEvent) => {
      const { answer, token } = messageOf(data);
      if (answer === ask && token !== undefined) end(token);
    };
    channel.addEventListener("message", hear);
    channel.postMessage({ ask } satisfies Message);
    setTimeout(end, WAIT_MS);
  });
}
