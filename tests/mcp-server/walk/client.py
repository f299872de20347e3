"""Walks a behaviour tree with the client of the Python SDK, over HTTP and stdio, in both eras, and compares every answer.

Usage: client.py URL TOKEN PROGRAM FOLDER_OF_PROJECT
"""

import asyncio
import json
import pathlib
import re
import sys

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

CALLS = json.loads((pathlib.Path(__file__).resolve().parent / "calls.json").read_text())


def filled(value, names):
    """Puts known names in place of `@NAME`."""
    if isinstance(value, str):
        return re.sub(r"@(\w+)", lambda found: names.get(found[1], found[0]), value)
    if isinstance(value, list):
        return [filled(item, names) for item in value]
    if isinstance(value, dict):
        return {key: filled(item, names) for key, item in value.items()}
    return value


def settled(expected, found, names):
    """Replaces what differs from walk to walk: `*` is any text, `@NAME` is a text that is new, and is known from then on."""
    if isinstance(expected, str) and isinstance(found, str):
        if expected.endswith("*") and found.startswith(expected[:-1]):
            return found
        name = re.fullmatch(r"@(\w+)", expected)
        if not name or found in names.values():
            return expected
        names[name[1]] = found
        return found
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [settled(item, there, names) for item, there in zip(expected, found)]
    if isinstance(expected, dict) and isinstance(found, dict):
        return {key: settled(item, found.get(key), names) for key, item in expected.items()}
    return expected


async def walk(name, client, uri):
    async with client:
        tools = await client.list_tools()
        assert [tool.name for tool in tools.tools] == sorted({call["tool"] for call in CALLS}), tools
        names = {"URI": uri}
        for idx, call in enumerate(CALLS):
            arguments = {"trace_output": uri, **filled(call["arguments"], names)}
            result = await client.call_tool(call["tool"], arguments)
            text, is_error = result.content[0].text, "error" in call
            found = text if is_error else json.loads(text)
            expected = settled(filled(call["error"] if is_error else call["answer"], names), found, names)
            place = f"{name}, call {idx + 1}: {call['tool']} {arguments}"
            assert (bool(result.is_error), found) == (is_error, expected), f"{place}\n{found}\n{expected}"
            assert is_error or isinstance(found, list) or result.structured_content == found, place
        print(f"Python SDK over {name}, {client.protocol_version}: {len(CALLS)} calls of a tree's tools")


async def main():
    url, token, program, folder = sys.argv[1:]
    for mode in ["auto", "legacy"]:
        async with create_mcp_http_client(headers={"Authorization": f"Bearer {token}"}) as http:
            transport = streamable_http_client(f"{url}?tools=tree", http_client=http)
            await walk("HTTP", Client(transport, mode=mode), f"memory://python-{mode}")
        stdio = StdioServerParameters(command=program, args=["mcp", "--tools", "tree"], cwd=folder)
        await walk("stdio", Client(stdio, mode=mode), f"file://{folder}/python-{mode}.json")


asyncio.run(main())
