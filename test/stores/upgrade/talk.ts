import { setTimeout as pause } from "node:timers/promises";

const KEY = "rest-key-of-the-upgrade-tests";
const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };

/** A gateway on this store whose agent takes a moment for each turn. */
export function serving(store: object) {
  return {
    gateway: { rest: { auth: { keys: [{ name: "upgrade", key: KEY, scopes: ["chat", "admin"] }] } } },
    webhooks: { token: "webhook-token-of-the-upgrade-tests", rateLimit: { maxRequests: 0 } },
    agents: { main: { backend: "echo", echo: { delayMs: 5 } } },
    store,
  };
}

/** Calls like a client: again, if the gateway cannot answer now. */
async function ask(url: string, init: RequestInit): Promise<Response> {
  for (let tries = 1; ; tries++) {
    const answer = await fetch(url, init);
    if (answer.status !== 503 || tries === 10) return answer;
    await answer.arrayBuffer();
    await pause(500);
  }
}

/** Sends a message in a session, and waits for the answer; resolves with the turn's id. */
export async function chat(url: string, session_id: string, message: string): Promise<string> {
  const body = JSON.stringify({ message, session_id });
  const answer = await ask(`${url}/api/v1/chat/send`, { method: "POST", headers, body });
  const json = (await answer.json()) as { turn_id: string; reply: string };
  if (answer.status !== 200 || json.reply !== message) throw new Error(`${answer.status} ${JSON.stringify(json)}`);
  return json.turn_id;
}

async function read(url: string, path: string): Promise<unknown> {
  const answer = await ask(`${url}/api/v1${path}`, { headers });
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return await answer.json();
}

export function answerOf(url: string, turnId: string) {
  return read(url, `/turns/${turnId}`);
}

/** One call of each kind: writes, reads, and the automatic work of the gateway. */
export async function callAll(url: string, session: string, n: number): Promise<string> {
  const body = JSON.stringify({ text: `event ${n}`, mode: "now" });
  const wake = { authorization: "Bearer webhook-token-of-the-upgrade-tests", "content-type": "application/json" };
  const woken = await ask(`${url}/hooks/wake`, { method: "POST", headers: wake, body });
  const { eventId, deliveryId } = (await woken.json()) as { eventId: string; deliveryId: string };
  if (woken.status !== 200) throw new Error(`wake: ${woken.status}`);
  const turnId = await chat(url, session, `message ${n}`);
  const paths = [`/turns/${turnId}`, `/events/${eventId}`, "/events", `/deliveries/${deliveryId}`, "/deliveries"];
  await Promise.all(paths.map((path) => read(url, path)));
  return turnId;
}
