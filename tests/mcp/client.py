"""Talks to a host with the official Python SDK: over streamable HTTP and over stdio, in the revision with a handshake and
in the one without. Checks every structured answer against the schema that the host gave. Prints one line a check and ends
with 1 at the first that does not hold.

    python tests/mcp/client.py http  http://127.0.0.1:7600 TOKEN
    python tests/mcp/client.py stdio TOKEN memhost mcp --url http://127.0.0.1:7600
"""

import asyncio
import sys

import httpx2
import jsonschema
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


def check(what, holds, found=None):
    print(("ok   " if holds else "FAIL ") + what)
    if not holds:
        raise SystemExit(f"{what}: {found!r}")


async def call(client, schemas, tool, arguments):
    """Calls a tool, and holds its answer against the tool's own schemas."""
    jsonschema.validate(arguments, schemas[tool].input_schema)
    result = await client.call_tool(tool, arguments)
    check(f"{tool} succeeds", not result.is_error, result.content)
    jsonschema.validate(result.structured_content, schemas[tool].output_schema)
    check(f"{tool} answers in words, too", result.content[0].type == "text" and result.content[0].text)
    return result.structured_content


async def refused(client, tool, arguments, needle):
    result = await client.call_tool(tool, arguments)
    text = result.content[0].text
    check(f"{tool} {arguments} teaches: {text[:90]}", result.is_error and needle in text, text)


async def exercise(client, label):
    check("the server says who it is", client.server_info.name == "memhost" and client.server_info.version)
    check("and how to use it", "memory_search" in (client.instructions or ""), client.instructions)

    tools = (await client.list_tools()).tools
    schemas = {tool.name: tool for tool in tools}
    names = [tool.name for tool in tools]
    expected = ["memory_search", "memory_note", "memory_correct", "memory_forget", "memory_browse"]
    check("the tools are those of the provider and the role", names[:5] == expected, names)
    for tool in tools:
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
        check(f"{tool.name} takes nothing that it does not name", tool.input_schema["additionalProperties"] is False)
    hints = {tool.name: tool.annotations for tool in tools}
    check("searching reads only", hints["memory_search"].read_only_hint is True)
    forgetting = hints["memory_forget"]
    check("forgetting destroys", forgetting.destructive_hint is True and not forgetting.read_only_hint)
    check("noting adds only", hints["memory_note"].destructive_hint is False)

    fact = f"Deploys are frozen on Fridays, says the {label} client"
    noted = await call(client, schemas, "memory_note", {"text": fact, "metadata": {"kind": "decision"}})
    record = noted["record"]["id"]
    found = await call(client, schemas, "memory_search", {"query": fact, "topK": 3})
    hit = next((hit for hit in found["records"] if hit["id"] == record), None)
    check("what was noted is found, with its provenance", hit and hit["source"]["kind"] == "manual_note", found)
    check("the provenance names the way in", hit["source"]["externalRef"].startswith("mcp"), hit)
    cut = await call(client, schemas, "memory_search", {"query": "deploys frozen", "maxChars": 100})
    check("texts are cut where asked", all(len(hit["text"]) <= 100 for hit in cut["records"]), cut)

    # Templates, the list page by page, and one record.
    templates = (await client.list_resource_templates()).resource_templates
    check("records have a template", templates[0].uri_template == "memory://{providerKey}/{recordId}", templates)
    uris, cursor = [], None
    while True:
        page = await client.list_resources(cursor=cursor)
        uris += [str(resource.uri) for resource in page.resources]
        cursor = page.next_cursor
        if cursor is None:
            break
    check("what was noted is a resource", noted["record"]["uri"] in uris, uris)
    read = await client.read_resource(noted["record"]["uri"])
    check("a resource is read whole", read.contents[0].text == fact, read)
    try:
        await client.read_resource("memory://local-markdown/no-such-record")
        check("a record that is not there is an error", False)
    except MCPError as error:
        check("a record that is not there is an error", "no record" in str(error), str(error))

    prompts = (await client.list_prompts()).prompts
    check("there is a prompt", [prompt.name for prompt in prompts] == ["memory_rules"], prompts)
    rules = await client.get_prompt("memory_rules")
    text = rules.messages[0].content.text
    check("it gives the plan's rules", "a durable fact, preference, or decision should survive this run" in text, text)

    corrected = await call(client, schemas, "memory_correct", {"id": record, "text": fact + ", and on Thursdays"})
    record = corrected["record"]["id"]
    page = await call(client, schemas, "memory_browse", {"limit": 5})
    check("the provider shows its tree", page["nodes"], page)
    for node in page["nodes"]:
        if node["hasChildren"]:
            await call(client, schemas, "memory_browse", {"path": node["path"]})
            break
    forgotten = await call(client, schemas, "memory_forget", {"ids": [record, "no-such-record"]})
    effects = [outcome["effect"] for outcome in forgotten["outcomes"]]
    check("forgetting says what became of each", effects[0] != "not_found" and effects[1] == "not_found", effects)
    gone = await call(client, schemas, "memory_search", {"query": fact})
    check("what is forgotten is gone", record not in [hit["id"] for hit in gone["records"]], gone)

    if "save_memory" in names:
        saved = await call(client, schemas, "save_memory", {"scope": "user", "fact": f"Likes {label}"})
        removed = await call(client, schemas, "remove_memory", {"scope": "user", "factId": saved["factId"]})
        check("the aliases do the same", removed["isRemoved"] is True, removed)
        await refused(client, "save_memory", {"scope": "user", "fact": "x" * 201}, "at most 200")
        await refused(client, "save_memory", {"scope": "drive", "fact": "x"}, "no workspace")

    await refused(client, "memory_search", {"query": "x", "companyId": "other"}, "come from the token")
    await refused(client, "memory_search", {"query": "x", "topK": 0}, "1 to 50")
    await refused(client, "memory_search", {}, "query")
    await refused(client, "memory_correct", {"id": record}, "exactly one")
    try:
        await client.call_tool("memory.nothing", {})
        check("an unknown tool is an error of the protocol", False)
    except MCPError as error:
        check("an unknown tool is an error of the protocol", error.error.code == -32602, error.error)


def transport(arguments):
    if arguments[0] == "http":
        _, url, token = arguments
        headers = {"authorization": f"Bearer {token}"}
        return lambda: streamable_http_client(f"{url}/mcp", http_client=httpx2.AsyncClient(headers=headers))
    _, token, command, *rest = arguments
    return lambda: StdioServerParameters(command=command, args=rest, env={"MEMHOST_TOKEN": token})


async def main(arguments):
    connect = transport(arguments)
    for mode in ["legacy", "auto"]:
        async with Client(connect(), mode=mode, read_timeout_seconds=30) as client:
            print(f"--   {arguments[0]}, {mode}: revision {client.protocol_version}")
            await exercise(client, f"{arguments[0]} {mode}")
    print("all  held")


asyncio.run(main(sys.argv[1:]))
