// First, so that the order of the layers is known before a page's own styles.
import "./styles/main.css";

import { render } from "preact";
import { identify, redeem } from "./app/api.ts";
import { pageOf } from "./app/pages.ts";
import { path } from "./app/router.ts";
import {
  choices,
  identity,
  isChecking,
  isLink,
  lastSignOut,
  offered,
  signIn,
  signInReason,
  signOut,
  storedToken,
  takeLink,
} from "./app/session.ts";
import "./app/settings.ts";
import "./app/visible-text.ts";
import { Shell } from "./app/shell.tsx";
import { ChooseIdentity, IdentityQuestion, SignIn, SignInAs } from "./app/signin.tsx";
import { askOtherTabs } from "./app/tabs.ts";
import { say } from "./app/toasts.ts";

function App() {
  if (isChecking.value) return <p class="checking">Signing in…</p>;
  if (identity.value)
    return (
      <>
        <Shell />
        <IdentityQuestion />
      </>
    );
  if (offered.value) return <SignInAs to={offered.value} />;
  return choices.value.length > 0 ? <ChooseIdentity among={choices.value} /> : <SignIn />;
}

/** Signs in with the token that this tab has stored, or with that of the other tabs. If they have several, the user chooses. */
async function resume(): Promise<void> {
  const since = lastSignOut();
  // Preloads the page. If that fails, the error is shown when the page is opened.
  pageOf(path.peek())
    ?.page.load()
    .catch(() => {});
  const stored = storedToken();
  const tokens = stored === undefined ? await askOtherTabs(askAgain) : [stored];
  const found = await Promise.all(tokens.map((token) => identify(token, since)));
  const given = found.flatMap((one) => ("refused" in one ? [] : [one]));
  const refused = found.find((one) => "refused" in one);
  const [first] = given;
  if (first === undefined) signOut(refused?.refused ?? signInReason.peek());
  else if (given.length === 1) signIn(first);
  else choices.value = given;
}

/** Called after a late answer of another tab: asks again, unless this tab has an identity or a question. */
function askAgain(): void {
  if (!identity.peek() && !offered.peek() && choices.peek().length === 0) void begin();
}

/**
 * Signs in with the code of a link. A tab that is signed in keeps its identity unless its user chooses the other. Anyone with a REST key can
 * create a link with it, so such a link asks in every tab. The console token has all rights, so its link needs no question.
 */
async function follow(link: { code: string } | { token: true }): Promise<void> {
  offered.value = undefined;
  const found = "code" in link ? await redeem(link.code) : { refused: TOKEN_IN_LINK };
  const current = identity.peek();
  if ("refused" in found) {
    if (current) say(found.refused, "bad");
    else signInReason.value = found.refused;
  } else if (current ? current.token === found.token : found.kind === "console") signIn(found);
  else offered.value = found;
}

const TOKEN_IN_LINK =
  "Links with tokens are not accepted, because the browser's history stores them. Run `agent-gateway open` for a link with a code. If others use this browser, replace the token.";

async function begin(): Promise<void> {
  const link = takeLink();
  try {
    if (!identity.peek()) await resume();
    if (link) await follow(link);
  } catch {
    const words = "The gateway did not respond. Reload the page later.";
    if (identity.peek()) say(words, "bad");
    else signInReason.value = words;
  }
  isChecking.value = false;
}

render(<App />, document.getElementById("app") as HTMLElement);
void begin();
addEventListener("hashchange", () => {
  if (isLink()) void begin();
});
