"""French: its words are in `language.toml`, its callers' sentences in `sentences.txt`."""

from voicepipe.languages.fr.forms import FORMS
from voicepipe.languages.word_rules import language_by_file

FRENCH = language_by_file("fr", FORMS)
