from langchain_openai import ChatOpenAI, OpenAIEmbeddings

model = ChatOpenAI(model="assistant", base_url="http://localhost:8000/v1", api_key="sk-…")
for piece in model.stream("How many miles are ten kilometres?"):
    print(piece.content, end="", flush=True)  # prints: 10 kilometres are about 6.21 miles.
print()

embeddings = OpenAIEmbeddings(
    model="text-embedding-3-small",
    base_url="http://localhost:8000/v1",
    api_key="sk-…",
    check_embedding_ctx_length=False,  # sends text, where the library would send numbers of OpenAI's tokens
)
print(len(embeddings.embed_query("The kettle is boiling.")), "dimensions")  # prints: dimensions
