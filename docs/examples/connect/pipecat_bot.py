import asyncio

from pipecat.frames.frames import LLMRunFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService
from pipecat.workers.runner import WorkerRunner

llm = OpenAIRealtimeLLMService(base_url="ws://localhost:8000/v1/realtime", api_key="sk-…")
context = LLMContext([{"role": "user", "content": "What is two plus two?"}])
user, assistant = LLMContextAggregatorPair(context)
worker = PipelineWorker(Pipeline([user, llm, assistant]))  # with your transport's input and output around llm


@assistant.event_handler("on_assistant_turn_stopped")
async def show(assistant, message):
    print(message.content)  # prints: 2 plus 2 is 4.
    await worker.stop_when_done()


async def main():
    runner = WorkerRunner()
    await runner.add_workers(worker)
    await worker.queue_frame(LLMRunFrame())
    await runner.run()


asyncio.run(main())
