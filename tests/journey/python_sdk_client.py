"""Drives `groove serve` with the official Python SDK of MCP.

Usage: python_sdk_client.py GROOVE KB_PATH MODEL, over standard input and output,
or python_sdk_client.py URL, over HTTP to a server that runs.
Prints one line for each fact that was seen; fails at the first that was not.
"""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


def connection(arguments: list[str]):
    if len(arguments) == 1:
        return streamable_http_client(arguments[0])
    groove, kb_path, model = arguments
    return stdio_client(
        StdioServerParameters(
            command=groove, args=["serve", "--kb-path", kb_path, "--model", model]
        )
    )


async def main(arguments: list[str]) -> None:
    async with connection(arguments) as streams, ClientSession(*streams[:2]) as session:
        answer = await session.initialize()
        assert answer.server_info.name == "grooveseek", answer
        print("initialize", answer.protocol_version)

        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        wanted = {
            "search",
            "get_document",
            "get_connection_graph",
            "list_topics",
            "rebuild_index",
        }
        assert wanted <= set(tools), tools
        print("tools", " ".join(sorted(tools)))

        # The model may still be loading, in which case the answer says so.
        for _ in range(100):
            result = await session.call_tool("search", {"query": "forgotten password", "limit": 3})
            assert not result.is_error, result
            found = json.loads(result.content[0].text)
            if "degraded" not in found:
                break
            await asyncio.sleep(0.1)
        assert "degraded" not in found, found
        assert found == result.structured_content, "text and structured content differ"
        assert found["results"][0]["path"] == "it/accounts/password-reset.md", found
        print("search", found["results"][0]["path"], found["results"][0]["score"])

        path = found["results"][0]["path"]
        document = json.loads((await session.call_tool("get_document", {"path": path})).content[0].text)
        assert document["title"] == "Resetting a forgotten password", document
        print("get_document", document["title"])

        result = await session.call_tool("get_connection_graph", {"start": path, "depth": 1})
        graph = json.loads(result.content[0].text)
        assert graph == result.structured_content, "text and structured content differ"
        assert graph["nodes"][0]["path"] == path and len(graph["nodes"]) > 1, graph
        print("get_connection_graph", len(graph["nodes"]))

        topics = json.loads((await session.call_tool("list_topics", {})).content[0].text)
        assert {"it", "people", "product"} <= {topic["category"] for topic in topics}, topics
        print("list_topics", len(topics))

        refused = await session.call_tool("search", {"query": "-only -exclusions"})
        assert refused.is_error and "error" in json.loads(refused.content[0].text), refused
        print("refusal", "ok")

        rebuilt = json.loads((await session.call_tool("rebuild_index", {})).content[0].text)
        assert rebuilt["updated"] == 0 and rebuilt["total_documents"] > 0, rebuilt
        print("rebuild_index", rebuilt["total_documents"])


asyncio.run(main(sys.argv[1:]))
