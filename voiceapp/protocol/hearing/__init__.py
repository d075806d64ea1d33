"""The user's side of a session: from frames to turns, from turns to words."""
