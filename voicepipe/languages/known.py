"""The languages that have a folder here, by their tag."""

from voicepipe.languages.de.language import GERMAN
from voicepipe.languages.en.language import ENGLISH
from voicepipe.languages.es.language import SPANISH
from voicepipe.languages.fr.language import FRENCH
from voicepipe.languages.it.language import ITALIAN
from voicepipe.languages.language import Language
from voicepipe.languages.neutral import NEUTRAL
from voicepipe.languages.tags import primary

LANGUAGES = {language.tag: language for language in (ENGLISH, GERMAN, FRENCH, SPANISH, ITALIAN)}


def language_of(tag: str) -> Language:
    """The language of a BCP 47 tag, whatever its country: "de-AT" is "de". One without a folder has what all languages
    share (`neutral.py`)."""
    return LANGUAGES.get(primary(tag), NEUTRAL)
