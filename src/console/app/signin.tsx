import { useSignal } from "@preact/signals";
import { Card } from "../parts/card.tsx";
import { Field } from "../parts/fields.tsx";
import { Prose } from "../parts/prose.tsx";
import { Failed, Note } from "../parts/trouble.tsx";
import { useAction } from "../parts/use.ts";
import { identify } from "./api.ts";
import { signIn, signInReason } from "./session.ts";

/** Takes the console token, an API key of scope `admin`, or an RPC token. */
export function SignIn() {
  const token = useSignal("");
  const refused = useSignal<string | undefined>(undefined);
  const action = useAction(async () => {
    refused.value = undefined;
    const found = await identify(token.value.trim());
    if ("refused" in found) refused.value = found.refused;
    else signIn(found);
  });
  return (
    <Card>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (token.value.trim() !== "") void action.run();
        }}
      >
        <h1>Sign in</h1>
        {signInReason.value && (
          <Note tone="warning">
            <Prose text={signInReason.value} />
          </Note>
        )}
        <Field
          word="Console token"
          hint={
            <>
              <code>gateway.console.token</code> in the configuration. A start without a configuration prints the token.
              An admin API key or an RPC token works too, with fewer permissions.
            </>
          }
          error={refused.value}
        >
          <input
            type="password"
            name="token"
            autoComplete="off"
            autoFocus
            spellcheck={false}
            value={token.value}
            onInput={({ currentTarget }) => (token.value = currentTarget.value)}
          />
        </Field>
        <Failed of={action} />
        <button type="submit" class="button primary" disabled={action.isRunning.value}>
          {action.isRunning.value ? "Checking…" : "Sign in"}
        </button>
        <p class="hint">
          The token is stored in this tab until you close it. New tabs of this browser are signed in automatically.{" "}
          <code>agent-gateway open</code> signs in without typing the token. API reference: <a href="/docs">/docs</a>.
        </p>
      </form>
    </Card>
  );
}
