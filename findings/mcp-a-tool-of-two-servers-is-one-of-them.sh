#!/usr/bin/env bash
# An agent with two servers of MCP, `code` and `web`, each of which has a tool `search` (all of PyPI, mcp 1.30.0): what
# the model is offered, and whose tool answers when it calls `search`.
#                                                            offered           answers
#   langchain 1.5.2, langchain-mcp-adapters 0.3.2            one of the two    web, the last one
#   google-adk 2.13.0 (McpToolset)                           both, alike       web, the last one
#   autogen-agentchat 0.7.5 (McpWorkbench)                   both, alike       code, the first one
#   fastmcp 3.4.11, a server that mounts both                one of the two    code, the first one
#   openai-agents 0.24.0, smolagents 1.26.0                  an error before the first request
#
# The former four say nothing to the program, and the tool of the other server cannot be called: not by its description,
# which the model has read, nor by anything else. With ADK and AutoGen a model that chooses the one gets the answer of
# the other. Which it is depends on the order of the servers, so a server that is added for one project may take the
# tools of another away: `search`, `fetch` and `read_file` are names of many. Give each server a prefix:
# tool_name_prefix (langchain-mcp-adapters, ADK), namespace (FastMCP), include_server_in_tool_names (openai-agents).
# Source: https://modelcontextprotocol.io/specification/2025-11-25/server/tools (names are unique "within a server"),
# https://docs.langchain.com/oss/python/langchain/mcp, https://google.github.io/adk-docs/tools/mcp-tools/.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check mcp==1.30.0 langchain==1.5.2 langchain-mcp-adapters==0.3.2 \
    google-adk==2.13.0 autogen-agentchat==0.7.5 'autogen-ext[mcp]==0.7.5' fastmcp==3.4.11 openai-agents==0.24.0 \
    'smolagents[mcp]==1.26.0' 2>/dev/null
cat >server.py <<'PYTHON'
import sys
from mcp.server.fastmcp import FastMCP
server = FastMCP(sys.argv[1])
@server.tool()
def search(query: str) -> str:
    return f"from {sys.argv[1]}"
server.run()
PYTHON
cat >seen.py <<'PYTHON'
import asyncio, re, sys
from mcp import StdioServerParameters
SERVERS = {name: {"command": sys.executable, "args": ["server.py", name]} for name in ("code", "web")}
PARAMETERS = [StdioServerParameters(**server) for server in SERVERS.values()]
async def langchain():
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_mcp_adapters.client import MultiServerMCPClient
    offered = []
    class Model(GenericFakeChatModel):
        def bind_tools(self, tools, **_):
            offered.extend(tool.name for tool in tools)
            return self
    call = AIMessage("", tool_calls=[{"name": "search", "args": {"query": "x"}, "id": "1"}])
    client = MultiServerMCPClient({name: {**server, "transport": "stdio"} for name, server in SERVERS.items()})
    agent = create_agent(Model(messages=iter([call, AIMessage("ok")])), await client.get_tools())
    said = await agent.ainvoke({"messages": [("user", "Search.")]})
    return len(set(offered)), [message.content for message in said["messages"] if message.type == "tool"]
async def adk():
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
    from google.genai.types import Content, FunctionCall, Part
    offered = []
    class Model(BaseLlm):
        async def generate_content_async(self, request, stream=False):
            offered.append(len(request.config.tools[0].function_declarations))
            asked = any(part.function_response for content in request.contents for part in content.parts)
            call = Part(function_call=FunctionCall(name="search", args={"query": "x"}))
            yield LlmResponse(content=Content(role="model", parts=[Part(text="ok") if asked else call]))
    tools = [McpToolset(connection_params=StdioConnectionParams(server_params=one)) for one in PARAMETERS]
    said = await InMemoryRunner(LlmAgent(name="x", model=Model(model="fake"), tools=tools)).run_debug("Search.", quiet=True)
    return offered[0], [part.function_response for event in said for part in event.content.parts if part.function_response]
async def autogen():
    from autogen_agentchat.agents import AssistantAgent
    from autogen_core import FunctionCall
    from autogen_core.models import CreateResult, RequestUsage
    from autogen_ext.models.replay import ReplayChatCompletionClient
    from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams
    call = FunctionCall(id="1", name="search", arguments='{"query": "x"}')
    usage = RequestUsage(1, 1)
    answer = CreateResult(finish_reason="function_calls", content=[call], usage=usage, cached=False)
    info = {"function_calling": True, "vision": False, "json_output": False, "structured_output": False, "family": "x"}
    benches = [McpWorkbench(StdioServerParams(**server)) for server in SERVERS.values()]
    said = await AssistantAgent("x", ReplayChatCompletionClient([answer], model_info=info), workbench=benches).run(task="Search.")
    return len(benches), [message.content for message in said.messages]
async def fastmcp():
    from fastmcp import Client, FastMCP
    from fastmcp.server import create_proxy
    main = FastMCP("main")
    for name, server in SERVERS.items():
        main.mount(create_proxy({"mcpServers": {name: server}}))
    async with Client(main) as client:
        return len(await client.list_tools()), (await client.call_tool("search", {"query": "x"})).data
async def openai_agents():
    from agents import Agent, RunContextWrapper
    from agents.mcp import MCPServerStdio
    async with MCPServerStdio(SERVERS["code"]) as code, MCPServerStdio(SERVERS["web"]) as web:
        await Agent(name="x", mcp_servers=[code, web]).get_all_tools(RunContextWrapper(None))
def smolagents():
    from smolagents import MCPClient, ToolCallingAgent
    with MCPClient(PARAMETERS, structured_output=False) as tools:
        ToolCallingAgent(tools=tools, model=None)
try:
    which = globals()[sys.argv[1]]
    offered, answer = asyncio.run(which()) if asyncio.iscoroutinefunction(which) else which()
    print(sys.argv[1], offered, sorted(set(re.findall("from (code|web)", str(answer)))))
except Exception as error:
    print(sys.argv[1], type(error).__name__, "search" in str(error))
PYTHON
for name in langchain adk autogen fastmcp openai_agents smolagents; do
    env -i PATH="$PATH" HOME="$folder" timeout 120 venv/bin/python seen.py $name 2>/dev/null
done | tee seen
diff - seen <<'SEEN'
langchain 1 ['web']
adk 2 ['web']
autogen 2 ['code']
fastmcp 1 ['code']
openai_agents UserError True
smolagents ValueError True
SEEN
# Seen with Python 3.11, twice, 2026-12.
