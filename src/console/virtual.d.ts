/** The icons that `parts/icon-names.json` names, drawn by Lucide: the shapes of each. The build makes it. */
declare module "virtual:icons" {
  const icons: Record<string, [tag: string, attributes: Record<string, string>][]>;
  export default icons;
}

declare module "*.css" {}
