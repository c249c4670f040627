"""The written forms of Spanish, in the order in which they are looked for."""

from voicepipe.languages.markup import LINK, MARKDOWN
from voicepipe.languages.written_form import Forms

FORMS = Forms((*MARKDOWN, LINK))
