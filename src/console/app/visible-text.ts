// Shows the characters of escape sequences and of changes of the writing direction as marks, in every text that a component puts on the page.
// Values of form fields are not changed, because they are sent.
import { type ComponentChildren, Fragment, h, options, type VNode } from "preact";
import { shownChildren, shownText } from "../lib/visible-text.ts";

/** Attributes that are read as text. */
const READ = ["title", "aria-label", "aria-description", "alt", "placeholder", "label"] as const;
/** Elements that hold text only. */
const TEXT_ONLY = new Set<unknown>(["option", "title", "text", "tspan"]);

function mark(sign: string) {
  return h("span", { class: "sign" }, sign);
}

function show({ type, props }: VNode): void {
  if ((typeof type !== "string" && type !== Fragment) || type === "textarea") return;
  const given = props as Record<string, unknown> & { children?: ComponentChildren };
  for (const name of READ) if (typeof given[name] === "string") given[name] = shownText(given[name]);
  if (given.children === undefined) return;
  const children = shownChildren(given.children, mark, TEXT_ONLY.has(type)) as ComponentChildren;
  // The value of an option is its text, unless it has one.
  if (type === "option" && children !== given.children) given.value ??= given.children;
  given.children = children;
}

const before = options.vnode;
options.vnode = (vnode) => {
  show(vnode);
  before?.(vnode);
};
