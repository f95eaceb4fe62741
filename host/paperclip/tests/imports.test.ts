import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const SRC = path.join(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), "../src");

/** What each file of the plugin imports of the others, types included. */
function imports(): Map<string, string[]> {
  const files = readdirSync(SRC, { recursive: true, encoding: "utf8" }).filter((name) => /\.tsx?$/.test(name));
  const known = new Set(files.map((name) => name.replace(/\.tsx?$/, "")));
  return new Map(
    files.map((name) => {
      const text = readFileSync(path.join(SRC, name), "utf8");
      const named = [...text.matchAll(/(?:from|import)\s*\(?"(\.[^"]+)"/g)].map(([, to]) =>
        path.join(path.dirname(name), to ?? ""),
      );
      return [name.replace(/\.tsx?$/, ""), named.filter((to) => known.has(to))];
    }),
  );
}

test("no file of the plugin imports itself through others", () => {
  const all = imports();
  expect(all.get("plugin")).toContain("context");
  const circles: string[] = [];
  const done = new Set<string>();
  const walk = (file: string, way: string[]): void => {
    if (way.includes(file)) circles.push([...way.slice(way.indexOf(file)), file].join(" → "));
    if (way.includes(file) || done.has(file)) return;
    for (const next of all.get(file) ?? []) walk(next, [...way, file]);
    done.add(file);
  };
  for (const file of all.keys()) walk(file, []);
  expect(circles).toEqual([]);
});
