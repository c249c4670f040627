"""Italian: its words are in `language.toml`, its callers' sentences in `sentences.txt`."""

from voicepipe.languages.it.forms import FORMS
from voicepipe.languages.word_rules import language_by_file

ITALIAN = language_by_file("it", FORMS)
