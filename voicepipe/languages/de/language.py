"""German: its words are in `language.toml`, its callers' sentences in `sentences.txt`."""

from voicepipe.languages.de.forms import FORMS
from voicepipe.languages.word_rules import language_by_file

GERMAN = language_by_file("de", FORMS)
