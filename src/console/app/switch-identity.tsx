import { Dialog } from "../parts/dialog.tsx";
import { type Identity, identity, nameOf, offered, signIn } from "./session.ts";

/** Asks before a link signs a tab in with another identity. The first button stays, because anyone may have made the link. */
export const SwitchIdentity = ({ from, to }: { from: Identity; to: Identity }) => {
  const stay = () => {
    offered.value = undefined;
  };
  return (
    <Dialog title="Sign in with another identity?" close={stay}>
      <p>
        This tab is signed in with <bdi>{nameOf(from)}</bdi>. The link that you opened signs in with{" "}
        <bdi>
          <strong>{nameOf(to)}</strong>
        </bdi>
        {from.kind === to.kind && from.name === to.name ? ", another one" : ""}.
      </p>
      <p class="muted">If you did not make this link, stay. The code in the link is used up in either case.</p>
      <div class="dialog-actions">
        <button type="button" class="button" onClick={() => signIn(to)}>
          Switch
        </button>
        <button type="button" class="button primary" autoFocus onClick={stay}>
          Stay signed in
        </button>
      </div>
    </Dialog>
  );
};

/** The question, while there is one. */
export const IdentityQuestion = () =>
  identity.value && offered.value ? <SwitchIdentity from={identity.value} to={offered.value} /> : null;
