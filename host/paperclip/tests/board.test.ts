import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { Board, keyTrouble } from "../src/paperclip/board";

let server: Server | null = null;
afterEach(() => server?.close());

/** A Paperclip that knows two keys, of which the caller's ends then. */
async function board(ends: string | null, status = 200, token: string | null = "key"): Promise<Board> {
  server = createServer((request, answer) => {
    answer.statusCode = status;
    answer.end(
      JSON.stringify(
        request.url === "/api/cli-auth/me"
          ? { keyId: "own" }
          : [
              { id: "another", expiresAt: new Date().toISOString() },
              { id: "own", expiresAt: ends },
            ],
      ),
    );
  });
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
  return new Board(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, token);
}
const inDays = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString();

test("a key that ends within a week, or has ended, is spoken of, and no other", async () => {
  expect(await keyTrouble(await board(inDays(6)))).toContain("ends at");
  expect(await keyTrouble(await board(inDays(8)))).toBeNull();
  expect(await keyTrouble(await board(null))).toBeNull();
  expect(await keyTrouble(await board(null, 401))).toContain("is refused");
  // What Paperclip cannot answer says nothing of the key.
  expect(await keyTrouble(await board(null, 500))).toBeNull();
  expect(await keyTrouble(await board(inDays(1), 200, null))).toBeNull();
});
