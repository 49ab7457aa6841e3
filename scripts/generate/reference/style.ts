/** Small and without anything from elsewhere: system fonts, and the colours of the reader's own choice. */
export const style = `
:root { color-scheme: light dark; --ink: #1c2128; --soft: #57606a; --line: #d8dee4; --back: #ffffff; --tint: #f4f6f8; --link: #0a58ca; --mark: #fff4ce; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e1e6eb; --soft: #9aa5b1; --line: #323a44; --back: #14181d; --tint: #1d232a; --link: #7ab7ff; --mark: #3b3413; }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0; font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--back); overflow-wrap: anywhere; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
code, pre { font: 0.875em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
code { background: var(--tint); border-radius: 4px; padding: 0.1em 0.3em; }
pre { background: var(--tint); border: 1px solid var(--line); border-radius: 6px; padding: 0.75rem 1rem; margin: 0; overflow-x: auto; overflow-wrap: normal; }
h1 { font-size: 2rem; margin: 0 0 0.5rem; }
h2 { font-size: 1.4rem; margin: 3rem 0 0.5rem; padding-top: 1rem; border-top: 1px solid var(--line); }
#authentication h2 { margin-top: 2rem; }
h2::first-letter { text-transform: uppercase; }
h3 { font-size: 1.1rem; margin: 0 0 0.25rem; }
h3 a { color: inherit; }
h3 code { background: none; padding: 0; font-size: 1em; }
h4 { font-size: 0.95rem; margin: 1.25rem 0 0.25rem; }
h4 i, dt i { font-style: normal; font-weight: normal; color: var(--soft); font-size: 0.875rem; }
p { margin: 0.5rem 0; max-width: 46rem; }
section section, main > section { margin-top: 2rem; }
section:target > h3, dt:target { background: var(--mark); box-shadow: 0 0 0 0.4rem var(--mark); }
dl { margin: 0.5rem 0; }
dt { padding-top: 0.5rem; border-top: 1px solid var(--line); }
dt b { font-size: 0.75rem; color: var(--soft); border: 1px solid var(--line); border-radius: 4px; padding: 0 0.3em; }
dd { margin: 0 0 0.5rem; max-width: 46rem; }
figure { margin: 0.75rem 0; }
figcaption, .who, .type, .summary { color: var(--soft); font-size: 0.9rem; }
.verb { font-weight: 700; }
.errors { font-size: 0.9rem; }
nav a { display: block; padding: 0.15rem 0; font-size: 0.875rem; }
nav b { display: block; margin-top: 1rem; }
nav b a { color: var(--ink); }
nav b a::first-letter { text-transform: uppercase; }
main { padding: 1.5rem 1rem 4rem; max-width: 60rem; }
#contents { position: absolute; opacity: 0; }
label { display: block; padding: 0.75rem 1rem; border-bottom: 1px solid var(--line); cursor: pointer; color: var(--link); }
label::before { content: "\\2630\\00a0"; }
#contents:focus-visible + label { outline: 2px solid var(--link); outline-offset: -2px; }
nav { display: none; padding: 0.5rem 1rem 1rem; border-bottom: 1px solid var(--line); }
#contents:checked ~ nav { display: block; }
.skip { position: absolute; left: -100rem; }
.skip:focus { left: 1rem; top: 0.5rem; background: var(--back); }
@media (min-width: 60rem) {
  body { display: grid; grid-template-columns: 17rem minmax(0, 1fr); }
  #contents, label { display: none; }
  nav { display: block; position: sticky; top: 0; height: 100vh; overflow-y: auto; border: 0; border-right: 1px solid var(--line); padding: 1.5rem 1rem; }
  main { padding: 2rem 2.5rem 6rem; }
}
@media print { nav, label { display: none; } body { display: block; } }
`;
