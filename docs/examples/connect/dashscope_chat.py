import dashscope

dashscope.base_http_api_url = "http://localhost:8000/api/v1"
dashscope.api_key = "sk-…"

question = {"role": "user", "content": "How many miles are ten kilometres?"}
replies = dashscope.Generation.call(
    model="assistant", messages=[question], result_format="message", stream=True, incremental_output=True
)
for reply in replies:
    print(reply.output.choices[0].message.content, end="", flush=True)  # prints: 10 kilometres are about 6.21 miles.
print()

texts = ["The kettle is boiling.", "Tea is ready."]
answer = dashscope.TextEmbedding.call(model="text-embedding-v4", input=texts)
for row in answer.output["embeddings"]:
    print(row["text_index"], len(row["embedding"]), "dimensions")  # prints: dimensions
