// Bundles manifest, worker and pages into dist/. The worker brings everything that it needs: Paperclip installs plugins
// without running scripts, and an operator should not have to keep node_modules beside it.
import { build } from "esbuild";
import { rm } from "node:fs/promises";
import { createPluginBundlerPresets } from "@paperclipai/plugin-sdk/bundlers";

const { esbuild } = createPluginBundlerPresets({ uiEntry: "src/ui/index.tsx", sourcemap: false });
await rm("dist", { recursive: true, force: true });
await Promise.all([
  build({ ...esbuild.manifest, target: "node20" }),
  build({
    ...esbuild.worker,
    target: "node20",
    banner: {
      js: "import { createRequire as memhostRequire } from 'node:module'; const require = memhostRequire(import.meta.url);",
    },
  }),
  build({ ...esbuild.ui, jsx: "automatic" }),
]);
