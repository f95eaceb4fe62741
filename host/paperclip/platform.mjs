// Makes the optional package that brings memhost for this platform: node platform.mjs PROGRAM DIRECTORY
// Publish the directory, or install it beside the plugin with `npm install DIRECTORY`.
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

const [program, directory] = process.argv.slice(2);
if (program === undefined || directory === undefined) {
  console.error("usage: node platform.mjs PROGRAM DIRECTORY, such as ../../target/release/memhost ../../target/npm");
  process.exit(2);
}
const { version, license } = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8"));
const { platform, arch } = process;
const name = platform === "win32" ? "memhost.exe" : "memhost";
mkdirSync(directory, { recursive: true });
copyFileSync(program, path.join(directory, name));
chmodSync(path.join(directory, name), 0o755);
const manifest = {
  name: `@memhost/memhost-${platform}-${arch}`,
  version,
  license,
  description: `memhost for ${platform} on ${arch}`,
  os: [platform],
  cpu: [arch],
  files: [name],
  preferUnplugged: true,
};
writeFileSync(path.join(directory, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
console.log(`${manifest.name} ${version} is in ${directory}`);
