import { rest } from "#console/app/api.ts";
import { query, setQuery } from "#console/app/router.ts";
import { AgentLink } from "#console/parts/copy.tsx";
import { RawJson } from "#console/parts/json.tsx";
import { Markdown } from "#console/parts/markdown.tsx";
import { Facts, InspectorHead, Pending } from "#console/parts/page.tsx";
import { Tabs } from "#console/parts/tabs.tsx";
import { useLoaded } from "#console/parts/use.ts";
import type { Skill } from "./trigger-form.tsx";
import { TriggerForm } from "./trigger-form.tsx";

/** One skill: a form that triggers it, and the fields of its front matter. */
export function SkillView({ skill, back }: { skill: Skill; back: () => void }) {
  return (
    <article aria-label={`Skill ${skill.skill_id}`}>
      <InspectorHead all="All skills" back={back}>
        <div class="line">
          <strong class="mono">{skill.skill_id}</strong>
        </div>
        <p class="plain-text">{skill.description}</p>
      </InspectorHead>
      <Tabs
        label="Parts of the skill"
        open={query.value.get("tab") ?? "trigger"}
        onOpen={(id) => setQuery({ tab: id === "trigger" ? undefined : id })}
        tabs={[
          { id: "trigger", name: "Trigger", body: () => <TriggerForm skill={skill} /> },
          { id: "text", name: "SKILL.md", body: () => <Instructions id={skill.skill_id} /> },
          { id: "about", name: "About", body: () => <About skill={skill} /> },
        ]}
      />
    </article>
  );
}

function About({ skill }: { skill: Skill }) {
  const { agents, license, compatibility, allowed_tools, metadata, params_schema } = skill;
  return (
    <div class="section">
      <Facts
        of={[
          ["Agents", agents.length === 0 ? <span class="faint">no agent</span> : <AgentLinks agents={agents} />],
          license !== undefined && ["License", license],
          compatibility !== undefined && ["Needs", compatibility],
          allowed_tools !== undefined && ["Tools", <span class="mono">{allowed_tools.join(", ")}</span>],
          ...Object.entries(metadata ?? {}).map(([name, value]) => [name, value] as const),
          ["Params", params_schema ? "see the schema" : "any JSON object"],
        ]}
      />
      {params_schema && <RawJson value={params_schema} word="Parameter schema" />}
    </div>
  );
}

/** The text of the SKILL.md, as a model reads it, set as Markdown. */
function Instructions({ id }: { id: string }) {
  const loaded = useLoaded(async (signal) => (await rest().skills.get(id, { signal })).instructions, [id]);
  const text = loaded.value.value;
  if (text === undefined) return <Pending of={loaded} rows={4} />;
  return (
    <section class="section" aria-label="Instructions">
      {text === "" ? <p class="muted">SKILL.md has no instructions.</p> : <Markdown text={text} />}
      <p class="hint">
        From <code>{id}/SKILL.md</code>, without the front matter.
      </p>
    </section>
  );
}

function AgentLinks({ agents }: { agents: readonly string[] }) {
  return (
    <span class="line">
      {agents.map((agent) => (
        <AgentLink key={agent} name={agent} />
      ))}
    </span>
  );
}
