import json
from urllib.request import urlopen

import dashscope
from dashscope.audio.asr import Transcription
from dashscope.audio.tts_v2 import AudioFormat, SpeechSynthesizer
from dashscope.utils.oss_utils import OssUtils

dashscope.base_http_api_url = "http://localhost:8000/api/v1"
dashscope.base_websocket_api_url = "ws://localhost:8000/api-ws/v1/inference"
dashscope.api_key = "sk-…"

# A recording to transcribe; take one of yours instead.
synthesizer = SpeechSynthesizer(model="hibari", voice="woman", format=AudioFormat.WAV_16000HZ_MONO_16BIT)
with open("question.wav", "wb") as file:
    file.write(synthesizer.call("What is twelve times twelve?"))

address, _ = OssUtils.upload(model="moonshine-tiny-en", file_path="question.wav")
resolve = {"X-DashScope-OssResourceResolve": "enable"}
task = Transcription.async_call(model="moonshine-tiny-en", file_urls=[address], headers=resolve)
done = Transcription.wait(task)
print(done.output.task_status)  # prints: SUCCEEDED

with urlopen(done.output.results[0]["transcription_url"]) as file:
    print(json.load(file)["transcripts"][0]["text"])  # prints: twelve times twelve
