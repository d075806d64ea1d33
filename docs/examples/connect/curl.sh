curl -s http://localhost:8000/v1/chat/completions -H "Authorization: Bearer sk-…" -H "Content-Type: application/json" \
  -d '{"model": "assistant", "messages": [{"role": "user", "content": "What is two plus two?"}]}'

curl -s http://localhost:8000/v1/audio/speech -H "Authorization: Bearer sk-…" -H "Content-Type: application/json" \
  -d '{"model": "hibari", "voice": "woman", "input": "What is twelve times twelve?", "response_format": "wav"}' \
  -o question.wav

curl -s http://localhost:8000/v1/audio/transcriptions -H "Authorization: Bearer sk-…" \
  -F model=moonshine-tiny-en -F file=@question.wav
