import dashscope
from dashscope.audio.asr import Recognition

dashscope.api_key = "sk-…"
dashscope.base_websocket_api_url = "ws://localhost:8000/api-ws/v1/inference"

recognition = Recognition(model="paraformer-realtime-v2", format="wav", sample_rate=16000, callback=None)
result = recognition.call("question.wav")  # a recording of yours
for sentence in result.get_sentence():
    print(sentence["begin_time"], sentence["end_time"], sentence["text"])  # prints: twelve times twelve
