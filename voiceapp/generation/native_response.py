"""Answers in the words of the native style: whole, or as the bodies of frames."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from voiceapp.engines.interfaces import ChatUsage
from voiceapp.generation.accumulator import Accumulator
from voiceapp.generation.chat import ChatOutput
from voiceapp.generation.schemas import GenerationParameters

UNFINISHED = "null"
"""Value of `finish_reason` in a stream until the end: this text."""


class NativeResponse:
    """Writes the answers of one call."""

    def __init__(self, parameters: GenerationParameters, *, is_multimodal: bool, request_id: str) -> None:
        self._is_multimodal = is_multimodal
        self._is_incremental = bool(parameters.incremental_output)
        self._request_id = request_id
        self._count = parameters.n or 1
        # Functions are called, parts listed and several answers told apart in messages only.
        needs_message = is_multimodal or bool(parameters.tools) or self._count > 1
        self._has_text = parameters.result_format != "message" and not needs_message
        self._has_choices = parameters.result_format != "text" or needs_message

    async def reply(self, pieces: AsyncGenerator[ChatOutput, None]) -> dict[str, Any]:
        """The body of a whole answer, a `GenerationReply`.

        Raises whatever stops the pieces.
        """
        answers = [Accumulator(number) for number in range(self._count)]
        async with aclosing(pieces):
            async for piece in pieces:
                answers[piece.index].add(piece)
        output = {"text": None, "finish_reason": None} | self._output(answers, has_choices=self._has_choices)
        return {"status_code": 200, "code": "", "message": ""} | self._body(output, piece.usage)

    async def frames(self, pieces: AsyncGenerator[ChatOutput, None]) -> AsyncGenerator[dict[str, Any], None]:
        """The body of a frame for every piece: the answers so far, or with incremental output what is new.

        Raises whatever stops the pieces.
        """
        # The 1.x library puts increments together itself, and those of the text only where there are no choices.
        has_choices = self._has_choices and not (self._has_text and self._is_incremental)
        answers = [Accumulator(number) for number in range(self._count)]
        async with aclosing(pieces):
            async for piece in pieces:
                if self._is_incremental:
                    new, usage = Accumulator(piece.index), replace(piece.usage, output_tokens=piece.own_output_tokens)
                    new.add(piece)
                    yield self._body(self._output([new], has_choices=has_choices), usage)
                else:
                    answers[piece.index].add(piece)
                    yield self._body(self._output(answers, has_choices=has_choices), piece.usage)

    def _body(self, output: dict[str, Any], usage: ChatUsage) -> dict[str, Any]:
        return {"output": output, "usage": _usage(usage), "request_id": self._request_id}

    def _output(self, answers: Sequence[Accumulator], *, has_choices: bool) -> dict[str, Any]:
        output: dict[str, Any] = {}
        if self._has_text:
            output |= {"text": answers[0].text, "finish_reason": answers[0].finish_reason or UNFINISHED}
        if has_choices:
            output["choices"] = [self._choice(answer) for answer in answers]
        return output

    def _choice(self, answer: Accumulator) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": answer.text}
        if self._is_multimodal:
            message["content"] = [{"text": answer.text}] if answer.text else []
        if answer.reasoning:
            message["reasoning_content"] = answer.reasoning
        if answer.tool_calls:
            message["tool_calls"] = answer.tool_calls
        choice = {"finish_reason": answer.finish_reason or UNFINISHED, "index": answer.index, "message": message}
        return choice | ({"logprobs": {"content": answer.logprobs}} if answer.logprobs else {})


def _usage(usage: ChatUsage) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    details = {"cached_tokens": usage.cached_tokens, "dropped_messages": usage.dropped_messages}
    if any(details.values()):
        shown["prompt_tokens_details"] = {name: count for name, count in details.items() if count}
    if usage.reasoning_tokens:
        shown["output_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return shown
