// Where memhost is: on PATH, else in the platform package that may be installed beside this one.
import { accessSync, constants } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

export const PLATFORM_PACKAGE = `@memhost/memhost-${process.platform}-${process.arch}`;

/** The program's path, or null. */
export function findMemhost(searchPath: string, from: string): string | null {
  const runs = (file: string): boolean => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  };
  const name = process.platform === "win32" ? "memhost.exe" : "memhost";
  for (const directory of searchPath.split(path.delimiter)) {
    const file = path.join(directory, name);
    if (directory !== "" && runs(file)) return file;
  }
  try {
    const file = path.join(path.dirname(createRequire(from).resolve(`${PLATFORM_PACKAGE}/package.json`)), name);
    return runs(file) ? file : null;
  } catch {
    return null;
  }
}
