// The conformance suite imports a function of `fs` that Node 20 does not have, for a command that is not used here.
import fs from "node:fs";
import { register } from "node:module";

if (!("globSync" in fs)) {
  const hooks = `
    const OWN = "fs-with-glob:";
    export const resolve = (name, context, next) =>
      name === "fs" && context.parentURL?.includes("/conformance/")
        ? { url: OWN, shortCircuit: true, format: "module" }
        : next(name, context);
    export const load = (url, context, next) =>
      url === OWN
        ? { format: "module", shortCircuit: true, source:
            'export * from "node:fs"; export { default } from "node:fs"; export const globSync = () => [];' }
        : next(url, context);`;
  register("data:text/javascript," + encodeURIComponent(hooks));
}
