import base64
import threading

from dashscope.audio.qwen_omni import OmniRealtimeCallback, OmniRealtimeConversation


class Reply(OmniRealtimeCallback):
    sound, is_complete = b"", threading.Event()

    def on_event(self, event):
        if event["type"] == "response.audio_transcript.delta":
            print(event["delta"], end="", flush=True)  # prints: 2 plus 2 is 4.
        elif event["type"] == "response.audio.delta":
            self.sound += base64.b64decode(event["delta"])  # 16 bit PCM, mono, 24 kHz
        elif event["type"] == "response.done":
            self.is_complete.set()


reply, url = Reply(), "ws://localhost:8000/api-ws/v1/realtime"
conversation = OmniRealtimeConversation(model="voice", url=url, api_key="sk-…", callback=reply)
conversation.connect()
question = {"type": "input_text", "text": "What is two plus two?"}
conversation.create_item({"type": "message", "role": "user", "content": [question]})
conversation.create_response()
reply.is_complete.wait(timeout=30)
