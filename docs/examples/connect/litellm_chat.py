import litellm

address = {"api_base": "http://localhost:8000/v1", "api_key": "sk-…"}
question = {"role": "user", "content": "How many miles are ten kilometres?"}
for piece in litellm.completion(model="openai/assistant", messages=[question], stream=True, **address):
    print(piece.choices[0].delta.content or "", end="", flush=True)  # prints: 10 kilometres are about 6.21 miles.
print()

answer = litellm.embedding(model="openai/text-embedding-3-small", input=["The kettle is boiling."], **address)
print(len(answer.data[0]["embedding"]), "dimensions")  # prints: dimensions
