import type { ComponentChildren } from "preact";

/** A card alone on the page, for whoever is not signed in. */
export function Card({ children }: { children: ComponentChildren }) {
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
