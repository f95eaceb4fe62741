// What a value must be, by the JSON Schema that is declared for it: the part of the language that the declarations use.
// A refusal names the field and says it in the words of memhost's own MCP tools.
import { clip } from "./capture/text";

export interface Schema {
  type: "object" | "array" | "string" | "integer";
  properties?: Record<string, Schema>;
  required?: readonly string[];
  additionalProperties?: false;
  items?: Schema;
  enum?: readonly string[];
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  minimum?: number;
  maximum?: number;
  description?: string;
}

/** The arguments are not what the tool declares. */
export class Invalid extends Error {}

const WANTED = { object: "an object", array: "a sequence", string: "a string", integer: "a whole number" };

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "sequence";
  if (typeof value === "object") return "map";
  if (typeof value === "string") return `string ${JSON.stringify(clip(value, 80))}`;
  return `${typeof value === "boolean" ? "boolean" : Number.isInteger(value) ? "integer" : "floating point"} \`${String(value)}\``;
}

/** `a`, or `a` or `b`, or one of `a`, `b`, `c`. */
function oneOf(names: readonly string[]): string {
  const quoted = names.map((name) => `\`${name}\``);
  return quoted.length < 3 ? quoted.join(" or ") : `one of ${quoted.join(", ")}`;
}

/** Checks a value and answers it. A member that is null is absent. */
export function checked(schema: Schema, value: unknown, at = ""): unknown {
  const wrong = (says: string): never => {
    throw new Invalid(`${at === "" ? "the arguments" : at}: ${says}`);
  };
  const is = (fits: boolean): void => {
    if (!fits) wrong(`invalid type: ${kindOf(value)}, expected ${WANTED[schema.type]}`);
  };
  const range = (size: number, least = 0, most = Infinity, is = "is", of = ""): void => {
    if (size < least || size > most) wrong(`${is} ${size}${of}; ${least} to ${most} are allowed`);
  };
  switch (schema.type) {
    case "object": {
      is(typeof value === "object" && value !== null && !Array.isArray(value));
      const properties = schema.properties ?? {};
      const inside = (name: string): string => (at === "" ? name : `${at}.${name}`);
      const given: Record<string, unknown> = {};
      for (const [name, one] of Object.entries(value as object)) {
        const own = Object.hasOwn(properties, name) ? properties[name] : undefined;
        if (own === undefined)
          throw new Invalid(
            `${inside(name)}: unknown field \`${clip(name, 80)}\`, expected ${oneOf(Object.keys(properties))}`,
          );
        if (one !== null && one !== undefined) given[name] = checked(own, one, inside(name));
      }
      for (const name of schema.required ?? [])
        if (given[name] === undefined) throw new Invalid(`${inside(name)}: missing field \`${name}\``);
      return given;
    }
    case "array": {
      is(Array.isArray(value));
      const all = value as unknown[];
      range(all.length, schema.minItems, schema.maxItems, "has", " items");
      const { items } = schema;
      return items === undefined ? all : all.map((one, index) => checked(items, one, `${at}.${index}`));
    }
    case "string": {
      is(typeof value === "string");
      const text = value as string;
      if (schema.enum !== undefined && !schema.enum.includes(text))
        wrong(`unknown variant \`${clip(text, 80)}\`, expected ${oneOf(schema.enum)}`);
      if ((schema.minLength ?? 0) > 0 && text.trim() === "") wrong("is empty; give a text");
      range([...text].length, schema.minLength, schema.maxLength, "has", " characters");
      return text;
    }
    case "integer": {
      is(typeof value === "number" && Number.isInteger(value));
      range(value as number, schema.minimum, schema.maximum);
      return value;
    }
  }
}
