"""A language model of a few hundred kilobytes, made on the spot: it says one sentence, whatever it is asked.

The graph is a table from each token to the next, with the inputs and outputs of a decoder with one layer, so that the
real runtime loads it and runs it as any other.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

SENTENCE = "Every small thing can talk."
CONTEXT_TOKENS = 256
END, USER, ASSISTANT, SYSTEM = "<|end|>", "<|user|>", "<|assistant|>", "<|system|>"
TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
HEADS, HEAD_SIZE = 1, 2


def make(folder: Path, *, is_endless: bool = False) -> list[int]:
    """Write the model's files into `folder`; returns the tokens of the sentence, which an endless one repeats."""
    folder.mkdir(parents=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=[END, USER, ASSISTANT, SYSTEM],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([SENTENCE] * 10, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    tokens: list[int] = tokenizer.encode(SENTENCE).ids
    assert len(set(tokens)) == len(tokens), "a table needs a different token at every step"
    end, assistant = tokenizer.token_to_id(END), tokenizer.token_to_id(ASSISTANT)
    size = tokenizer.get_vocab_size()
    after = [tokens[0]] if is_endless else [end]
    onnx.save(_graph([assistant, *tokens, *after], size), str(folder / "model.onnx"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "GPT2TokenizerFast", "chat_template": TEMPLATE, "eos_token": END})
    )
    (folder / "genai_config.json").write_text(
        json.dumps(_configuration(size, end, 1_000_000 if is_endless else CONTEXT_TOKENS))
    )
    return tokens


def _graph(chain: list[int], size: int) -> onnx.ModelProto:
    """Logits of the next token by the last one: high for the one that follows in `chain`."""
    table = np.full((size, size), -5.0, dtype=np.float32)
    for token, following in itertools.pairwise(chain):
        table[token, following] = 5.0
    constants = {
        "table": table,
        "first": np.array([0], dtype=np.int64),
        "second": np.array([1], dtype=np.int64),
        "heads": np.array([HEADS], dtype=np.int64),
        "head_size": np.array([HEAD_SIZE], dtype=np.int64),
        "zero": np.zeros((1, 1, 1, 1), dtype=np.float32),
    }
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["logits"], axis=0),
        # The keys and values of attention: nothing, in the shape the runtime expects back.
        helper.make_node("Shape", ["input_ids"], ["shape"]),
        helper.make_node("Gather", ["shape", "first"], ["batch"], axis=0),
        helper.make_node("Gather", ["shape", "second"], ["length"], axis=0),
        helper.make_node("Concat", ["batch", "heads", "length", "head_size"], ["new_shape"], axis=0),
        helper.make_node("Expand", ["zero", "new_shape"], ["new"]),
        helper.make_node("Concat", ["past_key_values.0.key", "new"], ["present.0.key"], axis=2),
        helper.make_node("Concat", ["past_key_values.0.value", "new"], ["present.0.value"], axis=2),
    ]
    value = helper.make_tensor_value_info
    past = ["batch", HEADS, "past", HEAD_SIZE]
    present = ["batch", HEADS, "total", HEAD_SIZE]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [
            value("input_ids", TensorProto.INT64, ["batch", "length"]),
            value("attention_mask", TensorProto.INT64, ["batch", "total"]),
            value("past_key_values.0.key", TensorProto.FLOAT, past),
            value("past_key_values.0.value", TensorProto.FLOAT, past),
        ],
        [
            value("logits", TensorProto.FLOAT, ["batch", "length", size]),
            value("present.0.key", TensorProto.FLOAT, present),
            value("present.0.value", TensorProto.FLOAT, present),
        ],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    return model


def _configuration(size: int, end: int, context_tokens: int) -> dict[str, object]:
    return {
        "model": {
            "type": "llama",
            "vocab_size": size,
            "context_length": context_tokens,
            "bos_token_id": end,
            "eos_token_id": end,
            "pad_token_id": end,
            "decoder": {
                "filename": "model.onnx",
                "session_options": {"provider_options": []},
                "head_size": HEAD_SIZE,
                "hidden_size": HEAD_SIZE,
                "num_attention_heads": HEADS,
                "num_key_value_heads": HEADS,
                "num_hidden_layers": 1,
                "inputs": {
                    "input_ids": "input_ids",
                    "attention_mask": "attention_mask",
                    "past_key_names": "past_key_values.%d.key",
                    "past_value_names": "past_key_values.%d.value",
                },
                "outputs": {
                    "logits": "logits",
                    "present_key_names": "present.%d.key",
                    "present_value_names": "present.%d.value",
                },
            },
        },
        "search": {"max_length": context_tokens, "do_sample": False, "past_present_share_buffer": False},
    }
