import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { nameOf } from "../lib/identity.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Field } from "../parts/fields.tsx";
import { Prose } from "../parts/prose.tsx";
import { Failed, Note } from "../parts/trouble.tsx";
import { useAction } from "../parts/use.ts";
import { identify } from "./api.ts";
import { choices, type Given, identity, offered, signIn, signInReason } from "./session.ts";

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
              <code>gateway.console.token</code> in the configuration. If the gateway starts without a configuration, it
              prints the token. An admin API key or an RPC token works too, with fewer permissions.
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

/** The only card on the page before sign-in. */
function Card({ children }: { children: ComponentChildren }) {
  return (
    <main class="sign-in">
      <div class="stack card">
        <p class="brand">
          <span class="mark" aria-hidden="true" /> Agent Gateway
        </p>
        {children}
      </div>
    </main>
  );
}

function stay(): void {
  offered.value = undefined;
}

function Named({ of }: { of: Given }) {
  return (
    <bdi>
      <strong>{nameOf(of)}</strong>
    </bdi>
  );
}

/** Asks before a link changes the identity of a tab. The button with the focus keeps the current identity, because anyone can create such a link. */
function SwitchIdentity({ from, to }: { from: Given; to: Given }) {
  return (
    <Dialog title="Sign in with another identity?" close={stay}>
      <p>
        This tab is signed in with <bdi>{nameOf(from)}</bdi>. The link that you opened signs in with <Named of={to} />
        {from.kind === to.kind && from.name === to.name ? ", a different token with this name" : ""}.
      </p>
      <p class="muted">If you did not create this link, choose Stay signed in. The link works only once.</p>
      <div class="actions dialog-actions">
        <button type="button" class="button" onClick={() => signIn(to)}>
          Switch
        </button>
        <button type="button" class="button primary" autoFocus onClick={stay}>
          Stay signed in
        </button>
      </div>
    </Dialog>
  );
}

/**
 * Asks before the link of a REST key signs in a tab that is not signed in, because the owner of the key can see all actions with it. No
 * button has the focus, so that a key pressed for another page does not answer.
 */
export function SignInAs({ to }: { to: Given }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  const { name } = to;
  return (
    <Card>
      <h1 ref={heading} tabIndex={-1} class="break">
        Sign in as <bdi>{name}</bdi>?
      </h1>
      <p class="break">
        The link that you opened signs this tab in with <Named of={to} />.
      </p>
      <p class="muted">
        Continue only if you created this link: the owner of the key can see what you do with it. The link works only
        once.
      </p>
      <button type="button" class="button primary" onClick={() => signIn(to)}>
        <span class="break">
          Sign in as <bdi>{name}</bdi>
        </span>
      </button>
      <button type="button" class="button" onClick={stay}>
        Use another token
      </button>
    </Card>
  );
}

/** Asks which identity of the other tabs signs in a new tab: one of them may be for reading only. */
export function ChooseIdentity({ among }: { among: readonly Given[] }) {
  return (
    <Card>
      <h1>Choose an identity</h1>
      <p>The other tabs of this browser are signed in with different identities.</p>
      {among.map((one) => (
        <button key={one.token} type="button" class="button" onClick={() => signIn(one)}>
          <span class="break">
            Sign in with <bdi>{nameOf(one)}</bdi>
          </span>
        </button>
      ))}
      <button type="button" class="button" onClick={() => (choices.value = [])}>
        Use another token
      </button>
    </Card>
  );
}

/** Asks whether to switch to the identity that a link offers, if there is one. */
export function IdentityQuestion() {
  return identity.value && offered.value ? <SwitchIdentity from={identity.value} to={offered.value} /> : null;
}
