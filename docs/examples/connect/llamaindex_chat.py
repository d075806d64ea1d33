from llama_index.core.llms import ChatMessage
from llama_index.llms.openai import OpenAI

# The library calls no model whose name it does not know; the server takes this one for its own.
llm = OpenAI(model="gpt-4o-mini", api_base="http://localhost:8000/v1", api_key="sk-…")
for piece in llm.stream_complete("How many miles are ten kilometres?"):
    print(piece.delta, end="", flush=True)  # prints: 10 kilometres are about 6.21 miles.
print()

reply = llm.chat([ChatMessage(role="user", content="What is two plus two?")])
print(reply.message.content)  # prints: 2 plus 2 is 4.
