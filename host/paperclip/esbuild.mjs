// Bundles manifest, worker and pages into dist/. The worker brings everything that it needs: Paperclip installs plugins
// without running scripts, and an operator should not have to keep node_modules beside it.
import { build } from "esbuild";
import { rm } from "node:fs/promises";
import { createPluginBundlerPresets } from "@paperclipai/plugin-sdk/bundlers";

// The SDK's entry re-exports Paperclip's schemas. The worker uses none of them, and loading them takes 45 MiB of memory.
// Their modules do nothing but define exports, which their package.json does not say.
const unusedSchemasAreLeftOut = {
  name: "unused-schemas-are-left-out",
  setup(build) {
    build.onResolve(
      { filter: /^(zod|@paperclipai\/(shared|plugin-sdk))(\/|$)/ },
      async ({ path, pluginData, ...args }) => {
        if (pluginData === "resolving") return undefined;
        const found = await build.resolve(path, { ...args, pluginData: "resolving" });
        return { ...found, sideEffects: false };
      },
    );
  },
};

const { esbuild } = createPluginBundlerPresets({ uiEntry: "src/ui/index.tsx", sourcemap: false });
await rm("dist", { recursive: true, force: true });
const [, worker] = await Promise.all([
  build({ ...esbuild.manifest, target: "node20" }),
  build({
    ...esbuild.worker,
    target: "node20",
    plugins: [unusedSchemasAreLeftOut],
    metafile: true,
    banner: {
      js: "import { createRequire as memhostRequire } from 'node:module'; const require = memhostRequire(import.meta.url);",
    },
  }),
  build({ ...esbuild.ui, jsx: "automatic" }),
]);

const bundled = Object.values(worker.metafile.outputs).flatMap(({ inputs }) => Object.keys(inputs));
const schema = bundled.find((file) => /node_modules\/(zod|@paperclipai\/shared)\//.test(file));
if (schema !== undefined) throw new Error(`the worker would load schemas that it does not use, such as ${schema}`);
