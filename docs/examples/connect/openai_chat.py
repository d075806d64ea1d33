from openai import OpenAI

client = OpenAI(base_url="http://localhost:8000/v1", api_key="sk-…")

question = {"role": "user", "content": "How many miles are ten kilometres?"}
for piece in client.chat.completions.create(model="assistant", messages=[question], stream=True):
    print(piece.choices[0].delta.content or "", end="", flush=True)  # prints: 10 kilometres are about 6.21 miles.
print()

speech = client.audio.speech.create(
    model="hibari", voice="woman", input="What is twelve times twelve?", response_format="wav"
)
speech.write_to_file("reply.wav")
with open("reply.wav", "rb") as recording:
    heard = client.audio.transcriptions.create(model="moonshine-tiny-en", file=recording)
print(heard.text)  # prints: twelve times twelve
