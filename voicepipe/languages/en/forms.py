"""All written forms of English, in the order in which they are looked for."""

from voicepipe.languages.en.verbaliser import ENGLISH, telephone
from voicepipe.languages.markup import MARKDOWN
from voicepipe.languages.written_form import Forms

FORMS = Forms((*telephone.KEYS, *MARKDOWN, *ENGLISH))
