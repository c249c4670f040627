"""What the agent has asked, by patterns of the language in which it asks. Pure."""

import re
from typing import Literal, NamedTuple

from voicepipe.base.words import plain

Asks = Literal["", "digits", "spelled", "name", "detail", "yes"]
"""What a question wants: a telephone number or the like, what people spell, a name, another detail, a yes or a no.
Empty: it is no question, or one that a few words do not answer."""
LOOKED_BACK = 400
"""Characters of the agent's words among which a question is looked for."""
QUESTION = re.compile(r"[^.?!¿¡]*\?")


class QuestionPatterns(NamedTuple):
    """Each is searched for in a question's plain words."""

    invites: re.Pattern[str]
    """"How can I help you?": wants a sentence, of which "yes" is mostly the beginning."""
    digits: re.Pattern[str]
    spelled: re.Pattern[str]
    """Wants what people spell, with pauses between its parts."""
    names: re.Pattern[str]
    detail: re.Pattern[str]
    """Wants something that a yes is no answer to."""

    def asks(self, question: str) -> Asks:
        """What the question wants; `question` as `last_question` returns it."""
        if not question or self.invites.search(question):
            return ""
        if self.spelled.search(question):
            return "spelled"
        if self.digits.search(question):
            return "digits"
        if self.names.search(question):
            return "name"
        return "detail" if self.detail.search(question) else "yes"


def last_question(asked: str) -> str:
    """The last question of `asked`, the agent's words, plain, if at most one sentence stands behind it; else empty."""
    asked = asked[-LOOKED_BACK:]
    questions = list(QUESTION.finditer(asked))
    if not questions:
        return ""
    rest = asked[questions[-1].end() :]
    return plain(questions[-1][0]) if len(re.findall(r"[.!]", rest)) <= 1 else ""
