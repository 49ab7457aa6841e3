import type { Signal } from "@preact/signals";
import { headersOfLines, payloadOf } from "../lib/webhook-requests.ts";
import { Field } from "./fields.tsx";

type Code = {
  word: string;
  value: string;
  set: (value: string) => void;
  rows: number;
  placeholder?: string;
  hint?: string | undefined;
  error?: string | undefined;
};

/** A field of several lines in monospace. */
export function CodeField({ word, value, set, rows, placeholder, hint, error }: Code) {
  return (
    <Field word={word} hint={hint} error={error}>
      <textarea
        class="code"
        rows={rows}
        spellcheck={false}
        placeholder={placeholder}
        value={value}
        onInput={({ currentTarget }) => set(currentTarget.value)}
      />
    </Field>
  );
}

type RequestOf = { payload: Signal<string>; headers?: Signal<string> | undefined; rows: number };

/** A webhook as a sender would write it. */
export function RequestFields({ payload, headers, rows }: RequestOf) {
  const [body, head] = [payloadOf(payload.value), headersOfLines(headers?.value ?? "")];
  return (
    <>
      <CodeField
        word="Payload"
        rows={rows}
        placeholder={'{\n  "ref": "refs/heads/main"\n}'}
        value={payload.value}
        set={(text) => (payload.value = text)}
        error={"fault" in body ? body.fault : undefined}
      />
      {headers && (
        <CodeField
          word="Headers"
          rows={3}
          placeholder="x-github-event: push"
          value={headers.value}
          set={(text) => (headers.value = text)}
          error={"fault" in head ? head.fault : undefined}
        />
      )}
    </>
  );
}
