import { describe, expect, it } from "vitest";
import { createEchoBackend } from "#backends/echo.ts";
import { type Agent, type AgentTable, checkModel, createAgents, labelOfModel } from "#core/agents/agents.ts";
import { agentWith } from "./start-core.ts";

function agentOf(name: string, more: Partial<Agent> = {}): Agent {
  return {
    ...agentWith(createEchoBackend()),
    name,
    ...more,
  };
}

function tableOf(...names: string[]): AgentTable {
  return {
    agents: new Map(names.map((name) => [name, agentOf(name)])),
    defaultAgent: undefined,
  };
}

describe("agents", () => {
  it("are listed in the order of the configuration and found by name", () => {
    const agents = createAgents(() => tableOf("zoe", "ada"));
    expect(agents.list().map(({ name }) => name)).toEqual(["zoe", "ada"]);
    expect(agents.find("ada")?.name).toBe("ada");
    expect(agents.find("bob")).toBeUndefined();
  });

  it("include a default agent, which is used if no agent is named", () => {
    const agents = createAgents(() => ({ ...tableOf("zoe", "ada"), defaultAgent: "ada" }));
    expect(agents.get(undefined).name).toBe("ada");
    expect(agents.get("zoe").name).toBe("zoe");
  });

  it("refuse an unknown or empty name, and say if there is no default agent", () => {
    const agents = createAgents(() => tableOf("zoe"));
    const refusal = (name: string | undefined) => {
      try {
        return agents.get(name).name;
      } catch (error) {
        const { name, detail } = error as { name: string; detail: string };
        return `${name}: ${detail}`;
      }
    };
    expect(refusal("bob")).toBe("agent-not-found: No agent is named `bob`. There is `zoe`.");
    expect(refusal(undefined)).toBe("agent-not-found: There is no default agent.");
    expect(refusal("")).toBe("agent-not-found: No agent is named ``. There is `zoe`.");
    expect(refusal("constructor")).toBe("agent-not-found: No agent is named `constructor`. There is `zoe`.");
  });
});

describe("models", () => {
  const some = agentOf("main", { backend: { ...createEchoBackend(), models: ["small", "large"] } });
  const none = agentOf("main", { backend: { ...createEchoBackend(), models: [] } });

  it("are accepted if the agent has them, if it accepts any model, or if none was named", () => {
    for (const [agent, model] of [
      [some, "large"],
      [some, undefined],
      [none, undefined],
      [agentOf("main"), "anything"],
    ] as const) {
      expect(() => checkModel(agent, model)).not.toThrow();
    }
  });

  it("have few names in metrics, whatever names callers and agents use", () => {
    const any = agentOf("main");
    const names = Array.from({ length: 1_000 }, (_, n) => `model ${n}`);
    const labelsOf = (agent: Agent) => new Set(["small", "large", ...names].map((name) => labelOfModel(agent, name)));
    expect(labelsOf(any)).toEqual(new Set(["echo"]));
    expect(labelsOf(none)).toEqual(new Set(["echo"]));
    expect(labelsOf(some)).toEqual(new Set(["small", "large", "echo"]));
  });

  it("are refused if the agent does not have them, with a list of its models", () => {
    const refused = (detail: string) => expect.objectContaining({ name: "unknown-model", detail });
    expect(() => checkModel(some, "huge")).toThrow(refused("The models of the agent main are: small, large."));
    expect(() => checkModel(none, "huge")).toThrow(refused("The agent main has no models to choose from."));
  });
});
