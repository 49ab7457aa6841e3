import type { SchemaField } from "../lib/schema-form.ts";
import { Field, Select } from "./fields.tsx";
import { Prose } from "./prose.tsx";

type Of = { field: SchemaField; value: string; set: (value: string) => void; error: string | undefined };

/** The field of one value of a JSON Schema. */
export function ParamField({ field, value, set, error }: Of) {
  const { word, isRequired, description, limits, kind } = field;
  const hint = [description, limits && `${limits[0]?.toUpperCase()}${limits.slice(1)}.`, kind === "json" && "As JSON."]
    .filter(Boolean)
    .join(" ");
  return (
    <Field word={isRequired ? `${word} (required)` : word} hint={hint && <Prose text={hint} />} error={error}>
      <Control field={field} value={value} set={set} />
    </Field>
  );
}

function Control({ field: { kind, options, isRequired, placeholder }, value, set }: Omit<Of, "error">) {
  const none = !isRequired || value === "" ? [["", isRequired ? "Choose one" : "Not set"] as const] : [];
  if (kind === "choice")
    return (
      <Select value={value} choices={[...none, ...options.map((one) => [one, wordOf(one)] as const)]} choose={set} />
    );
  if (kind === "long" || kind === "json")
    return (
      <textarea
        class={kind === "json" ? "code" : ""}
        rows={3}
        spellcheck={kind === "long"}
        placeholder={placeholder}
        value={value}
        onInput={({ currentTarget }) => set(currentTarget.value)}
      />
    );
  return (
    <input
      inputMode={kind === "text" ? "text" : kind === "integer" ? "numeric" : "decimal"}
      autocomplete="off"
      placeholder={placeholder}
      value={value}
      onInput={({ currentTarget }) => set(currentTarget.value)}
    />
  );
}

/** A value of a choice without the quotes of JSON. */
function wordOf(option: string): string {
  const value: unknown = JSON.parse(option);
  return typeof value === "string" ? value : value === true ? "Yes" : value === false ? "No" : option;
}
