"""Drives the prompts, resources, completions and news of `groove serve` with the
official Python SDK of MCP.

Usage: python_sdk_library.py GROOVE KB_PATH MODEL
Prints one line for each fact that was seen; fails at the first that was not.
"""

import asyncio
import json
import pathlib
import sys

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client


def text_of(result) -> dict:
    return json.loads(result.content[0].text)


async def main(groove: str, kb_path: str, model: str) -> None:
    server = StdioServerParameters(
        command=groove, args=["serve", "--kb-path", kb_path, "--model", model]
    )
    heard: asyncio.Queue = asyncio.Queue()

    async def hear(message) -> None:
        if not isinstance(message, Exception):
            await heard.put(message)

    async def expect(method: str, uri: str | None = None) -> None:
        async with asyncio.timeout(60):
            while True:
                message = await heard.get()
                message = getattr(message, "root", message)
                same = uri is None or str(getattr(message.params, "uri", "")) == uri
                if message.method == method and same:
                    return

    async with (
        stdio_client(server) as (read, write),
        ClientSession(read, write, message_handler=hear) as session,
    ):
        answer = await session.initialize()
        assert answer.capabilities.resources.subscribe, answer
        assert answer.capabilities.completions is not None, answer

        prompts = {prompt.name: prompt for prompt in (await session.list_prompts()).prompts}
        assert list(prompts) == ["summarize_topic", "deep_dive", "whats_new", "find_gaps"], prompts
        got = await session.get_prompt("deep_dive", {"question": "Why VPN?", "language": "ja"})
        assert "Why VPN?" in got.messages[0].content.text and len(got.messages) == 1, got
        print("prompts", len(prompts))

        topic = {"name": "topic", "value": ""}
        reference = types.PromptReference(type="ref/prompt", name="summarize_topic")
        topics = (await session.complete(reference, topic)).completion.values
        assert "network" in topics, topics
        path = {"name": "path", "value": "it/network/"}
        reference = types.ResourceTemplateReference(type="ref/resource", uri="kb://doc/{path}")
        paths = (await session.complete(reference, path)).completion.values
        assert "it/network/vpn.md" in paths, paths
        print("completions", len(topics), len(paths))

        groups = {str(group.uri): group for group in (await session.list_resources()).resources}
        assert "kb://topic/it/network" in groups, groups
        body = (await session.read_resource("kb://topic/it/network")).contents[0].text
        assert "kb://doc/it/network/vpn.md" in body, body
        document = (await session.read_resource("kb://doc/it/network/vpn.md")).contents[0]
        assert document.mime_type == "text/markdown" and "VPN" in document.text, document
        templates = (await session.list_resource_templates()).resource_templates
        assert [template.uri_template for template in templates] == ["kb://doc/{path}"], templates
        print("resources", len(groups))

        for outside in ["kb://doc/../x.md", "kb://doc/%2e%2e/x.md", "file:///etc/passwd"]:
            try:
                await session.read_resource(outside)
            except Exception as error:
                assert "groove doctor" in str(error), error
            else:
                raise AssertionError(outside)
        print("outside", "ok")

        found = text_of(await session.call_tool("search", {"query": "VPN error 809", "limit": 3}))
        hit = found["results"][0]
        assert hit["uri"] == "kb://doc/it/network/vpn.md", hit
        assert hit["location"]["start_line"] >= 1 and hit["path"] in hit["cite"], hit
        bounded = text_of(
            await session.call_tool("search", {"query": "VPN error 809", "max_tokens": 400})
        )
        assert bounded["results"] and bounded["budget"]["max_tokens"] == 400, bounded
        print("search", hit["cite"])

        quote = hit["content"].strip().split(". ")[0]
        checked = text_of(
            await session.call_tool("verify_quote", {"text": quote, "path": hit["path"]})
        )
        assert checked["status"] == "exact", checked
        moved = text_of(
            await session.call_tool(
                "verify_quote", {"text": quote, "path": "it/network/printers.md"}
            )
        )
        assert moved["status"] == "moved" and moved["places"][0]["path"] == hit["path"], moved
        print("verify_quote", checked["status"], moved["status"])

        practice = await session.call_tool("get_best_practice", {"target": "vpn"})
        assert practice.is_error and "path_templates" in practice.content[0].text, practice
        filters = text_of(await session.call_tool("list_filters", {}))
        assert filters["documents"] > 0 and filters["tags"], filters
        print("list_filters", filters["documents"])

        await session.subscribe_resource("kb://doc/it/network/vpn.md")
        file = pathlib.Path(kb_path, "it/network/vpn.md")
        file.write_text(file.read_text() + "\n## New\n\nA new gateway opens next week.\n")
        await expect("notifications/resources/updated", "kb://doc/it/network/vpn.md")
        new = pathlib.Path(kb_path, "brand/new/page.md")
        new.parent.mkdir(parents=True)
        new.write_text("# A page\n\nThe brand handbook is here from now on.\n")
        await expect("notifications/resources/list_changed")
        groups = [str(group.uri) for group in (await session.list_resources()).resources]
        assert "kb://topic/brand/new" in groups, groups
        print("news", "ok")


asyncio.run(main(*sys.argv[1:]))
