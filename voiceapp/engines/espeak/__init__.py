"""The espeak-ng child process, the pipe to it, and its voice."""
