"""Functions with `llama-index-llms-openai`: address and key are arguments, what came of it is one line of JSON."""

import asyncio
import json
import sys
from typing import Literal

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai import OpenAI
from pydantic import BaseModel, Field

RAINS = "Is it raining in London?"


class Animal(BaseModel):
    """An animal and its legs."""

    name: str = Field(max_length=20)
    legs: Literal[2, 4, 8]


async def main(address: str, key: str) -> None:
    asked: list[str] = []

    def get_weather(city: str) -> str:
        """Get the current weather in a given city"""
        asked.append(city)
        return json.dumps({"sky": f"rain over {city}"})

    weather = FunctionTool.from_defaults(get_weather)
    llm = OpenAI(model="gpt-4o-mini", api_base=f"http://{address}/v1", api_key=key, max_retries=0)
    told = {"reply": llm.complete("What is two plus two?").text}
    told["streamed"] = "".join(part.delta or "" for part in llm.stream_complete("What is two plus two?"))
    told["called"] = llm.predict_and_call([weather], RAINS).response
    streamed = [*llm.stream_chat_with_tools([weather], user_msg=RAINS, tool_required=True)][-1]
    (call,) = llm.get_tool_calls_from_response(streamed)
    told["insisted"] = {call.tool_name: call.tool_kwargs}
    told["animal"] = llm.structured_predict(Animal, PromptTemplate("Describe a dog.")).model_dump()
    agent = FunctionAgent(tools=[weather], llm=llm)
    told["agent"] = str(await agent.run(RAINS))
    print(json.dumps(told | {"asked": asked}))


asyncio.run(main(*sys.argv[1:]))
