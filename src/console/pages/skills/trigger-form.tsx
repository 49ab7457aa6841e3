import { useSignal } from "@preact/signals";
import { rest } from "#console/app/api.ts";
import { useKeys } from "#console/app/keys.ts";
import { copyText } from "#console/app/toasts.ts";
import { curlOf } from "#console/lib/curl.ts";
import { acceptsMore, fieldsOf, paramsOf } from "#console/lib/schema-form.ts";
import { TurnInspector } from "#console/pages/sessions/turn.tsx";
import { CodeField } from "#console/parts/code-field.tsx";
import { ActionButton, Field, Select } from "#console/parts/fields.tsx";
import { ParamField } from "#console/parts/param-field.tsx";
import { Failed } from "#console/parts/trouble.tsx";
import { useAction } from "#console/parts/use.ts";
import type { SkillList } from "#generated/clients/typescript/src/rest.ts";

export type Skill = SkillList["skills"][number];

const MORE = "\0more";

/** A form of the skill's params, and the turn that it starts. */
export function TriggerForm({ skill }: { skill: Skill }) {
  const { skill_id, agents, params_schema } = skill;
  const schema = params_schema ?? {};
  const fields = fieldsOf(schema);
  const hasMore = acceptsMore(schema);
  const values = useSignal<Record<string, string>>({});
  const agent = useSignal(agents[0] ?? "");
  const isTried = useSignal(false);
  const turnId = useSignal<string | undefined>(undefined);
  const start = useAction(async () => {
    turnId.value = undefined;
    turnId.value = (await rest().skills.start(body)).turn_id;
  });
  const read = readForm(fields, values.value, hasMore);
  const faults = "faults" in read && isTried.value ? read.faults : {};
  const set = (name: string) => (value: string) => {
    values.value = { ...values.value, [name]: value };
  };
  const body = {
    skill_id,
    ...(agent.value !== "" && { agent: agent.value }),
    params: "params" in read ? read.params : {},
  };
  const why =
    agents.length === 0 ? "No agent has this skill. Add it to `agents.<name>.skills` in the configuration." : undefined;
  const send = () => {
    isTried.value = true;
    if ("params" in read && why === undefined) void start.run();
  };
  const copy = () =>
    void copyText(
      curlOf({
        method: "POST",
        origin: location.origin,
        path: "/api/v1/skills/trigger",
        secret: "REST_API_KEY",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
      "Copied as curl",
    );
  useKeys([{ key: "c", does: "Copy as curl", run: copy }]);
  return (
    <>
      <form
        class="section fill"
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        {agents.length > 1 && (
          <Field word="Agent">
            <Select
              value={agent.value}
              choices={agents.map((one) => [one, one])}
              choose={(one) => (agent.value = one)}
            />
          </Field>
        )}
        {fields.map((field) => (
          <ParamField
            key={field.name}
            field={field}
            value={values.value[field.name] ?? field.initial}
            set={set(field.name)}
            error={faults[field.name]}
          />
        ))}
        {hasMore && (
          <CodeField
            word={fields.length === 0 ? "Params" : "Other params"}
            hint={fields.length === 0 ? "A JSON object. Optional." : "A JSON object with additional fields. Optional."}
            error={faults[MORE]}
            rows={fields.length === 0 ? 5 : 2}
            placeholder="{}"
            value={values.value[MORE] ?? ""}
            set={set(MORE)}
          />
        )}
        <div class="actions bar-actions">
          <ActionButton icon="play" kind="primary" onClick={send} why={why} runs={start}>
            Trigger
          </ActionButton>
          <ActionButton icon="terminal" onClick={copy} hotkey="c">
            curl
          </ActionButton>
        </div>
        <p class="hint">Starts a real turn in a new session.</p>
      </form>
      <Failed of={start} />
      {turnId.value && <TurnInspector key={turnId.value} id={turnId.value} />}
    </>
  );
}

type Read = ReturnType<typeof paramsOf>;

/** The params of all fields, and of the JSON below them. */
function readForm(fields: ReturnType<typeof fieldsOf>, values: Record<string, string>, hasMore: boolean): Read {
  const read = paramsOf(fields, values);
  const text = values[MORE] ?? "";
  if (!hasMore || text.trim() === "") return read;
  const faults = "faults" in read ? read.faults : {};
  try {
    const more: unknown = JSON.parse(text);
    if (typeof more !== "object" || more === null || Array.isArray(more))
      return { faults: { ...faults, [MORE]: "Must be a JSON object." } };
    return "params" in read ? { params: { ...more, ...read.params } } : read;
  } catch {
    return { faults: { ...faults, [MORE]: "Invalid JSON." } };
  }
}
