import dashscope
from dashscope.audio.asr import Recognition
from dashscope.audio.tts_v2 import AudioFormat, SpeechSynthesizer

dashscope.api_key = "sk-…"
dashscope.base_websocket_api_url = "ws://localhost:8000/api-ws/v1/inference"

# A recording to recognise; take one of yours instead.
synthesizer = SpeechSynthesizer(model="hibari", voice="woman", format=AudioFormat.WAV_16000HZ_MONO_16BIT)
with open("question.wav", "wb") as file:
    file.write(synthesizer.call("What is twelve times twelve?"))

recognition = Recognition(model="moonshine-tiny-en", format="wav", sample_rate=16000, callback=None)
for sentence in recognition.call("question.wav").get_sentence():
    print(sentence["begin_time"], sentence["end_time"], sentence["text"])  # prints: twelve times twelve
