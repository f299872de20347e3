"""Lists tools, calls one and reads a resource with the client of the Python SDK, over HTTP and stdio, in both eras.

Usage: client.py URL TOKEN PROGRAM FOLDER_OF_PROJECT
"""

import asyncio
import sys

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client


async def check(name, client):
    async with client:
        tools = await client.list_tools()
        assert any(tool.name == "test_simple_text" for tool in tools.tools), tools
        called = await client.call_tool("test_simple_text", {})
        assert "simple text response" in called.content[0].text, called
        read = await client.read_resource("test://static-text")
        assert "static text" in read.contents[0].text, read
        print(f"Python SDK over {name}, {client.protocol_version}: ok")


async def main():
    url, token, program, folder = sys.argv[1:]
    for mode in ["auto", "legacy"]:
        async with create_mcp_http_client(headers={"Authorization": f"Bearer {token}"}) as http:
            await check("HTTP", Client(streamable_http_client(url, http_client=http), mode=mode))
        stdio = StdioServerParameters(command=program, args=["mcp"], cwd=folder)
        await check("stdio", Client(stdio, mode=mode))


asyncio.run(main())
