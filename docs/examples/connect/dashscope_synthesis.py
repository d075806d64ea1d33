import dashscope
from dashscope.audio.tts_v2 import AudioFormat, SpeechSynthesizer

dashscope.api_key = "sk-…"
dashscope.base_websocket_api_url = "ws://localhost:8000/api-ws/v1/inference"

format = AudioFormat.WAV_24000HZ_MONO_16BIT
synthesizer = SpeechSynthesizer(model="hibari", voice="woman", format=format)
sound = synthesizer.call("Good morning. The library opens at nine o'clock.")
with open("reply.wav", "wb") as file:
    print(file.write(sound), "bytes")  # prints: bytes
