import asyncio

from livekit.agents import Agent, AgentSession
from livekit.plugins.openai.realtime import RealtimeModel


async def main():
    model = RealtimeModel(model="voice", base_url="http://localhost:8000/v1", api_key="sk-…")
    async with AgentSession(llm=model) as session:  # in an agent's entrypoint: session.start(room=ctx.room, …)
        await session.start(agent=Agent(instructions="Be brief."))
        reply = await session.run(user_input="What is two plus two?")
        print(reply.events[-1].item.text_content)  # prints: 2 plus 2 is 4.


asyncio.run(main())
