"""Speech detection, recognition, language and speech synthesis, each behind a Protocol of `base.py`."""
