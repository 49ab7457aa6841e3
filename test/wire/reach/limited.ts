import { SECRETS, type SomeConfig, type TestGateway } from "#test/harness/gateway.ts";
import { skillText } from "#test/harness/skills.ts";

/** A key and a token that may use only the agent `a`. */
export const LIMITED = { key: "a-key-for-the-agent-a", rpcToken: "a-token-for-the-agent-a" } as const;
/** A key and a token that may use every agent. */
export const FULL = { key: SECRETS.key, rpcToken: SECRETS.rpcToken } as const;

/** `zz` does not exist. */
export const AGENTS = ["a", "b", "zz"] as const;
export type AgentName = (typeof AGENTS)[number];

export const SKILLS = {
  shared: skillText("shared", "Both agents have it."),
  "of-a": skillText("of-a", "The agent a has it."),
  "of-b": skillText("of-b", "The agent b has it."),
  "of-none": skillText("of-none", "No agent has it."),
  broken: "no front matter",
};

/** The agents `a` and `b`, of which `b` is the default one, and keys and tokens for `a`, or `agents`, and for all. */
export function configOf(agents: readonly string[] | undefined = ["a"], more: SomeConfig = {}): SomeConfig {
  const limits = agents && { agents: [...agents] };
  return {
    ...more,
    agents: {
      a: { backend: "echo", skills: ["shared", "of-a"] },
      b: { backend: "echo", skills: ["shared", "of-b"] },
      ...more.agents,
    },
    gateway: {
      defaultAgent: "b",
      openai: { enabled: true },
      rest: {
        auth: {
          keys: [
            { name: "limited", key: LIMITED.key, ...limits },
            { name: "full", key: FULL.key },
            { name: "admin", key: SECRETS.adminKey, scopes: ["admin"] },
          ],
        },
      },
      rpc: {
        auth: {
          tokens: [
            { name: "limited", token: LIMITED.rpcToken, permissions: "*", ...limits },
            { name: "full", token: FULL.rpcToken, permissions: "*" },
          ],
        },
      },
      ...more.gateway,
    },
  };
}

/** A completed turn of each agent, in a session of its own. An agent that does not exist has well-formed ids of nothing. */
export async function seed(gateway: TestGateway) {
  const start = async (agent: AgentName) => {
    if (agent === "zz") return { turn_id: "turn_01M7YN0XEMM1B7E5S8YF3GKP2N", session_id: "chat:unknown" };
    const { json } = await gateway.rest.call("chat.send", { body: { message: `hello ${agent}`, agent } });
    return { turn_id: String(json.turn_id), session_id: String(json.session_id) };
  };
  return { a: await start("a"), b: await start("b"), zz: await start("zz") };
}
