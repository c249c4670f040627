"""Spanish: its words are in `language.toml`, its callers' sentences in `sentences.txt`."""

from voicepipe.languages.es.forms import FORMS
from voicepipe.languages.word_rules import language_by_file

SPANISH = language_by_file("es", FORMS)
