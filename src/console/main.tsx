// First, so that the order of the layers is known before a page's own styles.
import "./styles/main.css";

import { render } from "preact";
import { identify } from "./app/api.ts";
import { pageOf } from "./app/pages.ts";
import { path } from "./app/router.ts";
import { identity, isChecking, keptKind, signIn, signInReason, signOut, takeToken } from "./app/session.ts";
import "./app/settings.ts";
import { Shell } from "./app/shell.tsx";
import { SignIn } from "./app/signin.tsx";

const App = () => {
  if (isChecking.value) return <p class="checking">Signing in…</p>;
  return identity.value ? <Shell /> : <SignIn />;
};

/** Signs in with the token of the link, or with the one that this tab has kept. */
const begin = async (): Promise<void> => {
  const token = takeToken();
  // The page is loaded while the token is looked at. A failure shows where the page is opened.
  if (token !== undefined)
    pageOf(path.peek())
      ?.page.load()
      .catch(() => {});
  try {
    const found = token === undefined ? undefined : await identify(token, keptKind());
    if (found && "refused" in found) signOut(found.refused);
    else if (found) signIn(found);
  } catch {
    signInReason.value = "The gateway did not answer. Load the page again once it is back.";
  }
  isChecking.value = false;
};

render(<App />, document.getElementById("app") as HTMLElement);
void begin();
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) void begin();
});
