import type { Call } from "./calls.ts";
import type { GatewayWish } from "./gateways.ts";
import { REST_KEY } from "./gateways.ts";

/** So many pieces has the answer of a stand-in that answers at once. */
export const PIECES = 10;

const MESSAGE = "What changed since yesterday? ".repeat(4);
const JSON_TYPE = { "content-type": "application/json" };

/** A turn by REST, in a session of its own, as a proxy's requests know nothing of each other. */
export const turnCall: Call = {
  path: "/api/v1/chat/send",
  headers: { ...JSON_TYPE, authorization: `Bearer ${REST_KEY}` },
  body: JSON.stringify({ message: MESSAGE }),
};

/** How long each side runs before it counts: V8 compiles for seconds what a turn goes through. */
export const WARM_UP_S = 6;

/** The same by the door for OpenAI's clients: what a proxy is asked, too. */
export const doorCall: Call = {
  path: "/v1/chat/completions",
  headers: { ...JSON_TYPE, authorization: `Bearer ${REST_KEY}` },
  body: JSON.stringify({ model: "main", messages: [{ role: "user", content: MESSAGE }] }),
};

/** The same asked of the model itself, or of a proxy before it; the gateway asks for a stream. */
export const completionCall = (stream: boolean, headers: Readonly<Record<string, string>> = {}): Call => ({
  path: "/v1/chat/completions",
  headers: { ...JSON_TYPE, ...headers },
  body: JSON.stringify({ model: "stand-in", messages: [{ role: "user", content: MESSAGE }], stream }),
});

/** The same asked of an agent's service. */
export const serviceCall: Call = {
  path: "/turns",
  headers: { ...JSON_TYPE, accept: "application/json" },
  body: JSON.stringify({ message: MESSAGE }),
};

const CONCURRENCY = 4_096;
const gateway = { openai: { enabled: true } };

/** A gateway whose agent is a model. */
export const modelAt = (url: string): GatewayWish => ({
  gateway,
  providers: { local: { type: "openai-compatible", baseUrl: `${url}/v1` } },
  agent: { backend: "model", models: { one: { provider: "local", model: "stand-in" } }, concurrency: CONCURRENCY },
});

/** A gateway whose agent is a web service that keeps its conversations itself. */
export const serviceAt = (url: string): GatewayWish => ({
  gateway,
  agent: { backend: "http", http: { url: `${url}/turns`, history: false }, concurrency: CONCURRENCY },
});
