import json
from urllib.request import urlopen

import dashscope
from dashscope.audio.asr import Transcription
from dashscope.utils.oss_utils import OssUtils

dashscope.base_http_api_url = "http://localhost:8000/api/v1"
dashscope.api_key = "sk-…"

address, _ = OssUtils.upload(model="paraformer-v2", file_path="question.wav")  # a recording of yours
resolve = {"X-DashScope-OssResourceResolve": "enable"}
task = Transcription.async_call(model="paraformer-v2", file_urls=[address], headers=resolve)
done = Transcription.wait(task)
print(done.output.task_status)  # prints: SUCCEEDED

with urlopen(done.output.results[0]["transcription_url"]) as file:
    print(json.load(file)["transcripts"][0]["text"])  # prints: twelve times twelve
